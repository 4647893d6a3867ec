"""What is raised when memory runs out: torch's error, whichever operator asked for the memory."""

import re

import pytest

import mindtorch_v2 as torch

TOO_MUCH = {
    "empty": (lambda t: t.empty(2**60), 2**62),
    "zeros": (lambda t: t.zeros(2**28, 2**28), 2**58),
    "full": (lambda t: t.full((2**45,), 2), 2**48),
    "arange": (lambda t: t.arange(2**45), 2**48),
    "legacy constructor": (lambda t: t.Tensor(2**45), 2**47),
    "pointwise": (lambda t: t.ones(2**20)[:, None] + t.ones(2**20), 2**42),
    "product": (lambda t: t.ones(2**21, 1) @ t.ones(1, 2**21), 2**44),
    "copy": (lambda t: t.ones(1).expand(2**45).clone(), 2**47),
    "in place": (lambda t: t.ones(4).resize_(2**44), 2**46),
    "composite": (lambda t: t.ones(2**20).repeat(2**22), 2**44),
}


@pytest.mark.parametrize("name", TOO_MUCH)
def test_the_error_is_torchs_and_says_how_many_bytes_were_asked_for(name):
    allocate, size_bytes = TOO_MUCH[name]
    with pytest.raises(RuntimeError, match=f"DefaultCPUAllocator: can't allocate memory: you tried to allocate {size_bytes} bytes"):
        allocate(torch)


def test_numpys_error_is_the_cause():
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**60)
    assert isinstance(caught.value.__cause__, MemoryError)


@pytest.mark.parametrize("sizes", [(2**62,), (2**61, 2)])
def test_bytes_that_cannot_be_counted_are_refused(sizes):
    with pytest.raises(RuntimeError, match=re.escape(f"Storage size calculation overflowed with sizes={list(sizes)}")):
        torch.empty(sizes)


def test_in_a_backward_pass():
    x = torch.ones(1, requires_grad=True)
    element = x.expand(2**45)[0]
    with pytest.raises(RuntimeError, match=f"you tried to allocate {2**47} bytes"):
        element.backward()


@pytest.mark.parity
@pytest.mark.parametrize("name", TOO_MUCH)
def test_the_text_is_torchs(name):
    import torch as reference

    def text(module):
        with pytest.raises(RuntimeError) as caught:
            TOO_MUCH[name][0](module)
        return str(caught.value)

    # torch puts before it which line of its own source found out
    assert text(reference).endswith(text(torch))
