"""Operators of the user's own, as torch's users define them."""

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2.utils._python_dispatch import TorchDispatchMode


@pytest.fixture
def lib():
    library = torch.library.Library("testlib", "DEF")
    yield library
    library._destroy()


def test_define_and_implement(lib):
    lib.define("scale(Tensor x, float factor=2.0) -> Tensor")
    lib.impl("scale", lambda x, factor: x * factor, "CPU")
    assert torch.ops.testlib.scale(torch.tensor([1.0, 2.0])).tolist() == [2.0, 4.0]
    assert torch.ops.testlib.scale.default(torch.tensor([1.0]), 3.0).tolist() == [3.0]


def test_a_composite_needs_no_kernel_and_is_differentiable(lib):
    lib.define("square(Tensor x) -> Tensor")
    lib.impl("square", lambda x: x * x, "CompositeImplicitAutograd")
    x = torch.tensor([3.0], requires_grad=True)
    torch.ops.testlib.square(x).sum().backward()
    assert x.grad.tolist() == [6.0]


def test_without_a_kernel_the_error_names_the_operator_and_the_keys(lib):
    lib.define("nothing(Tensor x) -> Tensor")
    with pytest.raises(NotImplementedError, match=r"testlib::nothing.*CPU"):
        torch.ops.testlib.nothing(torch.ones(1))


def test_a_second_kernel_for_a_key_is_refused(lib):
    lib.define("f(Tensor x) -> Tensor")
    lib.impl("f", lambda x: x + 1, "CPU")
    with pytest.raises(RuntimeError, match="allow_override"):
        lib.impl("f", lambda x: x + 2, "CPU")
    lib.impl("f", lambda x: x + 2, "CPU", allow_override=True)
    assert torch.ops.testlib.f(torch.zeros(1)).tolist() == [2.0]


def test_unknown_dispatch_key(lib):
    lib.define("g(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match="could not parse dispatch key"):
        lib.impl("g", lambda x: x, "Nonsense")


def test_custom_op_with_derivative_and_shape_rule():
    @torch.library.custom_op("testlib2::cube", mutates_args=())
    def cube(x: torch.Tensor) -> torch.Tensor:
        return x * x * x

    @cube.register_fake
    def _(x):
        return torch.empty_like(x)

    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])

    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 3 * x * x

    cube.register_autograd(backward, setup_context=setup_context)
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    y = cube(x)
    assert y.tolist() == [8.0, 27.0]
    assert y.requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [12.0, 27.0]
    assert cube(torch.empty(5, device="meta")).shape == (5,)
    assert torch.ops.testlib2.cube(torch.tensor([2.0])).tolist() == [8.0]
    assert not cube(torch.tensor([2.0])).requires_grad


def test_custom_op_that_writes_to_an_argument_bumps_its_version():
    @torch.library.custom_op("testlib2::increment", mutates_args={"x"})
    def increment(x: torch.Tensor, by: float = 1.0) -> None:
        x.numpy()[...] += by

    x = torch.zeros(2)
    version = x._version
    increment(x, 2.0)
    assert x.tolist() == [2.0, 2.0]
    assert x._version > version


def test_custom_op_that_returns_its_input_is_refused():
    @torch.library.custom_op("testlib2::same", mutates_args=())
    def same(x: torch.Tensor) -> torch.Tensor:
        return x

    with pytest.raises(RuntimeError, match="may not alias any inputs"):
        same(torch.ones(1))


def test_infer_schema_reads_annotations():
    def f(x: torch.Tensor, n: int, scale: float = 0.5, flag: bool = False, *, name: str = "a") -> tuple[torch.Tensor, torch.Tensor]:
        raise NotImplementedError

    expected = '(Tensor x, SymInt n, float scale=0.5, bool flag=False, *, str name="a") -> (Tensor, Tensor)'
    assert torch.library.infer_schema(f, mutates_args=()) == expected


def test_infer_schema_wants_annotations():
    with pytest.raises(ValueError, match="must have a type annotation"):
        torch.library.infer_schema(lambda x: x, mutates_args=())


def test_tags_are_kept():
    with torch.library._scoped_library("tagged", "DEF") as lib:
        lib.define("f(Tensor x) -> Tensor", tags=(torch.Tag.pt2_compliant_tag, torch.Tag.pointwise))
        lib.impl("f", lambda x: x.clone(), "CPU")
        assert torch.ops.tagged.f.default.tags == [torch.Tag.pt2_compliant_tag, torch.Tag.pointwise]
        assert torch.ops.tagged.f(torch.ones(1)).item() == 1
    with pytest.raises((AttributeError, RuntimeError)):
        torch.ops.tagged.f(torch.ones(1))
    assert torch.Tag.pointwise in torch.ops.aten.add.Tensor.tags
    with pytest.raises(TypeError, match=r"tags must be torch.Tag"):
        torch.library.define("tagged::g", "(Tensor x) -> Tensor", tags="core")


def test_tags_of_custom_operators():
    @torch.library.custom_op("tagged::h", mutates_args=(), tags=torch.Tag.nondeterministic_seeded)
    def operator(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    assert operator._opoverload.tags == [torch.Tag.nondeterministic_seeded]


# --- the rules of custom operators ----------------------------------------------------------------------------------


@pytest.fixture
def sine():
    @torch.library.custom_op("library_test::sine", mutates_args=())
    def sine(x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(np.sin(x.numpy()))

    return sine


def test_kernels_read_arrays_of_tensors_that_require_grad(sine):
    sine.register_autograd(
        lambda ctx, g: g * ctx.saved_tensors[0].cos(), setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs)
    )
    x = torch.tensor([0.5, 1.0], requires_grad=True)
    sine(x).sum().backward()
    torch.testing.assert_close(x.grad, x.detach().cos())


def test_an_operator_without_a_derivative_says_so_in_backward(sine):
    y = sine(torch.ones(2, requires_grad=True))
    with pytest.raises(RuntimeError, match=r"library_test.sine.default but no autograd formula was registered"):
        y.sum().backward()


def test_results_share_no_memory_with_arguments():
    @torch.library.custom_op("library_test::flat", mutates_args=())
    def flat(x: torch.Tensor) -> torch.Tensor:
        return x.view(-1)

    with pytest.raises(RuntimeError, match="may not alias any inputs"):
        flat(torch.ones(2, 2))


def test_lists_and_missing_tensors_may_be_written():
    @torch.library.custom_op("library_test::touch", mutates_args={"y", "z"})
    def touch(x: torch.Tensor, y: torch.Tensor | None, z: list[torch.Tensor]) -> None:
        pass

    x, z = torch.ones(1), [torch.ones(1), torch.ones(1)]
    touch(x, None, z)
    assert x._version == 0
    assert [t._version > 0 for t in z] == [True, True]


def test_a_default_may_be_a_dtype():
    @torch.library.custom_op("library_test::typed", mutates_args=())
    def typed(x: torch.Tensor, dtype: torch.dtype = torch.float64) -> torch.Tensor:
        return x.to(dtype)

    assert typed(torch.ones(2)).dtype is torch.float64


def test_refused_definitions():
    with pytest.raises(NotImplementedError, match="kwarg-only Tensor args"):

        @torch.library.custom_op("library_test::keyword", mutates_args=())
        def keyword(x: torch.Tensor, *, y: torch.Tensor) -> torch.Tensor:
            return x

    with pytest.raises(ValueError, match=r"the op mutates \{'x'\}"):
        torch.library.custom_op("library_test::wrong", lambda x: None, mutates_args=(), schema="(Tensor(a!) x) -> ()")
    with pytest.raises(ValueError, match=r"\{'y'\} in mutates_args were not found"):

        @torch.library.custom_op("library_test::unknown", mutates_args={"y"})
        def unknown(x: torch.Tensor) -> None: ...

    with pytest.raises(ValueError, match=r"required to have a `device: torch.device` argument"):

        @torch.library.custom_op("library_test::none", mutates_args=(), device_types="cpu")
        def none() -> torch.Tensor: ...


def test_a_kernel_of_a_device_is_switched_off_and_on(caplog):
    @torch.library.custom_op("library_test::switched", mutates_args=())
    def switched(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    switched.register_kernel("cpu", lambda x: x + 2)
    x = torch.zeros(1)
    assert switched(x).item() == 2
    with switched.set_kernel_enabled("cpu", enabled=False):
        assert switched(x).item() == 1
        with switched.set_kernel_enabled("cpu", enabled=False):
            assert "already disabled" in caplog.text
    assert switched(x).item() == 2
    with switched.set_kernel_enabled("npu", enabled=False):
        assert "no kernel was registered for this device type" in caplog.text


def test_rules_for_a_mode_and_for_a_class(sine):
    seen = []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append("mode")
            return func(*args, **(kwargs or {}))

    @torch.library.register_torch_dispatch("library_test::sine", Mode)
    def rule(mode, func, types, args, kwargs):
        seen.append(type(mode).__name__)
        return func(*args, **kwargs)

    x = torch.ones(2)
    with Mode():
        sine(x)
        x + 1
    assert seen == ["Mode", "mode"]


def test_kernels_for_devices_that_are_not_here_are_taken_and_never_called():
    with torch.library._scoped_library("library_test", "FRAGMENT") as lib:
        lib.define("absent(Tensor x) -> Tensor")
        lib.impl("absent", lambda x: x + 1, "CPU")
        lib.impl("absent", lambda x: x + 2, "XPU")
        assert torch.ops.library_test.absent(torch.zeros(1)).item() == 1
        with pytest.raises(RuntimeError, match="could not parse dispatch key: Sideways"):
            lib.impl("absent", lambda x: x, "Sideways")


def test_opcheck_asks_for_a_derivative_and_compares_no_differences(sine):
    sine.register_fake(torch.empty_like)
    x = torch.randn(3, requires_grad=True)
    sine.register_autograd(lambda ctx, g: g, setup_context=lambda ctx, inputs, output: None)
    names = ["test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic"]
    assert torch.library.opcheck(sine, (x,)) == dict.fromkeys(names, "SUCCESS")
    assert torch.library.opcheck(torch.ops.library_test.sine, (x,)) == dict.fromkeys(names, "SUCCESS")
    with torch.library._scoped_library("library_test", "FRAGMENT") as lib:
        lib.define("bare(Tensor x) -> Tensor")
        lib.impl("bare", lambda x: x.clone(), "CPU")
        with pytest.raises(Exception, match="does not have an autograd kernel"):
            torch.library.opcheck(torch.ops.library_test.bare, (x,), test_utils="test_autograd_registration")


def test_opcheck_finds_operators_that_keep_a_state():
    calls = []

    @torch.library.custom_op("library_test::counting", mutates_args=())
    def counting(x: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        return x + len(calls)

    found = torch.library.opcheck(counting, (torch.ones(1),), test_utils="test_aot_dispatch_dynamic", raise_exception=False)
    assert "a second run on the same arguments gave something else" in found["test_aot_dispatch_dynamic"]


def test_below_autograd_nothing_is_recorded():
    x = torch.ones(1, requires_grad=True)
    with torch._C._AutoDispatchBelowAutograd():
        assert not (x * 2).requires_grad
    assert (x * 2).requires_grad


def test_schemas_and_devices_are_checked(lib):
    for schema, message in {
        "f(Tensor a) -> asdf": "unknown type specifier 'asdf'",
        "f(int64_t a) -> Tensor": "Use `SymInt` or `int`",
        "f(double a) -> Tensor": "Use `float`",
    }.items():
        with pytest.raises(RuntimeError, match=message):
            lib.define(schema)
    with pytest.raises(ValueError, match="expected schema to look like"):
        torch.library.define("testlib::f", "f(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match="Expected one of cpu, cuda"):
        torch.library.impl("testlib::f", "sideways")
    with pytest.raises(ValueError, match="or the string 'unknown'"):
        torch.library.infer_schema(lambda x: None, mutates_args="x")
    lib.define("g(Tensor[] a, SymInt b, float[2] c, ScalarType? d=None, Scalar e=1) -> (Tensor, Tensor?)")
    lib.define("h(Tensor a) -> Tensor")
    torch.library.impl("testlib::h", ["cpu", "xpu"], lambda x: x + 1)
    assert torch.ops.testlib.h(torch.zeros(1)).item() == 1


def test_a_result_may_be_a_tuple_of_one_tensor():
    @torch.library.custom_op("library_test::single", mutates_args=())
    def single(x: torch.Tensor) -> tuple[torch.Tensor]:
        return (x.clone(),)

    found = single(torch.ones(2))
    assert type(found) is tuple
    assert found[0].tolist() == [1, 1]
