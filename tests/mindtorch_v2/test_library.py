"""Operators of the user's own, as torch's users define them."""

import pytest

import mindtorch_v2 as torch


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
