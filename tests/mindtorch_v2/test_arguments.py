"""An argument that is accepted has its effect; one that cannot have it is refused."""

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2.fx import symbolic_trace
from mindtorch_v2.nn import functional as F

REFUSED = {
    "chunks of linear_cross_entropy": lambda: F.linear_cross_entropy(
        torch.ones(2, 3), torch.ones(4, 3), torch.tensor([0, 1]), options=object()
    ),
    "comments in the code of a graph": lambda: symbolic_trace(lambda x: x).graph.python_code("self", verbose=True),
    "colours of a graph": lambda: symbolic_trace(lambda x: x).print_readable(False, colored=True),
    "device of a sparse tensor": lambda: torch.sparse_coo_tensor((2, 2), device="meta"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_there_is_refused(name):
    with pytest.raises(NotImplementedError):
        REFUSED[name]()


@pytest.mark.parametrize("window", ["hann", "hamming", "bartlett", "blackman", "kaiser"])
def test_windows_refuse_pinned_memory(window):
    with pytest.raises(RuntimeError, match="pin_memory=True requires"):
        getattr(torch, window + "_window")(4, pin_memory=True)


@pytest.mark.parametrize("name", ["fftfreq", "rfftfreq"])
def test_frequencies_on_a_device(name):
    assert getattr(torch.fft, name)(4, device="meta").device.type == "meta"


def test_frames_aligned_to_the_window():
    # without the zeros around a window of 4 in frames of 8, one frame fits at each even start up to 16
    x = torch.arange(20.0)
    window = torch.ones(4)
    aligned = torch.stft(x, 8, 2, 4, window, center=False, return_complex=True, align_to_window=True)
    assert aligned.shape == (5, 9)
    np.testing.assert_allclose(aligned[0].real.numpy(), [sum(range(s, s + 4)) for s in range(0, 18, 2)], rtol=1e-6)
    assert torch.stft(x, 8, 2, 4, window, center=False, return_complex=True).shape == (5, 7)


def test_ambiguous_orders_of_dimensions():
    assert torch.ones(2, 3).dim_order(ambiguity_check=True) == (0, 1)
    with pytest.raises(RuntimeError, match="does not have unique dim order"):
        torch.ones(2, 1).dim_order(ambiguity_check=True)
    both = [torch.contiguous_format, torch.channels_last]
    assert torch.ones(2, 1, 3, 3).dim_order(ambiguity_check=both[:1]) == (0, 1, 2, 3)
    with pytest.raises(RuntimeError, match="exact one of the given memory formats"):
        torch.ones(2, 1, 3, 3).dim_order(ambiguity_check=both)
    with pytest.raises(TypeError, match="a bool or a list of memory formats"):
        torch.ones(2).dim_order(ambiguity_check="yes")


def test_sparse_parts_are_checked_unless_told_otherwise():
    with pytest.raises(RuntimeError, match="found index 5"):
        torch.sparse_coo_tensor([[5]], [1.0], (2,), check_invariants=True)
    unchecked = torch.sparse_coo_tensor([[5]], [1.0], (2,), check_invariants=False)
    assert unchecked._indices().tolist() == [[5]]
    with pytest.raises(RuntimeError, match="blocksize argument given"):
        torch.ones(2, 2).to_sparse(blocksize=(1, 1))


def test_dlpack_between_devices_and_streams():
    with pytest.raises(BufferError):
        torch.from_dlpack(torch.ones(2), device="meta")
    with pytest.raises(AssertionError, match="stream should be None on cpu"):
        torch.ones(2).__dlpack__(stream=1)
    with pytest.raises(TypeError, match="stream must be"):
        torch.ones(2).__dlpack__(stream="first")
    assert torch.from_dlpack(torch.ones(2), device="cpu").tolist() == [1.0, 1.0]


def test_unknown_names_are_refused():
    with pytest.raises(TypeError):
        torch.ones(2).type(torch.float64, device="meta")
    with pytest.raises(TypeError):
        torch.Tensor._make_subclass(torch.Tensor, torch.ones(2), False, dispatch_strides=True)
    with pytest.raises(RuntimeError, match="device"), torch.random.fork_rng(device_type="abacus"):
        pass


def test_unpooling_checks_its_stride():
    with pytest.raises(RuntimeError, match="strides should be greater than zero"):
        F.max_unpool3d(torch.ones(1, 1, 1, 1), torch.zeros(1, 1, 1, 1, dtype=torch.long), 2, stride=-1)


def test_blocked_attention_refuses_dropout():
    q = torch.ones(1, 1, 2, 4)
    with pytest.raises(RuntimeError, match="do not support dropout"):
        torch._scaled_dot_product_flash_attention_for_cpu(q, q, q, dropout_p=0.5)


def test_kernels_registered_through_a_library_go_with_it():
    definitions, kernels = torch.library.Library("arguments", "DEF"), torch.library.Library("arguments", "FRAGMENT")
    try:
        definitions.define("h(Tensor x) -> Tensor")
        torch.library.impl("arguments::h", "cpu", lambda x: x + 1)
        torch.library.impl("arguments::h", "cpu", lambda x: x + 2, lib=kernels)
        assert torch.ops.arguments.h(torch.zeros(1)).tolist() == [2.0]
        kernels._destroy()
        assert torch.ops.arguments.h(torch.zeros(1)).tolist() == [1.0]
    finally:
        definitions._destroy()


def test_a_second_shape_rule_needs_leave():
    library = torch.library.Library("arguments", "DEF")
    try:
        library.define("k(Tensor x) -> Tensor")
        torch.library.register_fake("arguments::k", lambda x: x)
        with pytest.raises(RuntimeError, match="allow_override"):
            torch.library.register_fake("arguments::k", lambda x: x, allow_override=False)
    finally:
        library._destroy()


def test_opcheck_uses_its_tolerances():
    calls = []

    @torch.library.custom_op("arguments::almost_twice", mutates_args=())
    def almost_twice(x: torch.Tensor) -> torch.Tensor:
        calls.append(x)
        return x * (2 + 0.05 * (len(calls) % 2))

    x = torch.ones(2, dtype=torch.float64)
    with pytest.raises(Exception, match="a second run on the same arguments gave something else"):
        torch.library.opcheck(almost_twice, (x,), test_utils="test_aot_dispatch_dynamic")
    torch.library.opcheck(almost_twice, (x,), test_utils="test_aot_dispatch_dynamic", rtol=0.1)
