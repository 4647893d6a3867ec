"""What torch.utils tells of operators' schemas and of hooks, as torch."""

import dataclasses

import pytest
import torch

import mindtorch_v2 as mt

pytestmark = pytest.mark.parity

OVERLOADS = """
add.Tensor add_.Tensor view.default split.Tensor t_.default relu_.default chunk.default unbind.int transpose_.default resize_.default
squeeze_.dim as_strided_.default select.int mm.default cat.default topk.default
""".split()


@pytest.mark.parametrize("overload", OVERLOADS)
def test_what_an_operator_shares_with_its_arguments(overload):
    facts = []
    for t in (mt, torch):
        name, _, kind = overload.partition(".")
        info = t.utils._python_dispatch.get_alias_info(getattr(getattr(t.ops.aten, name), kind))
        facts.append(dataclasses.asdict(info))
    assert facts[0] == facts[1]


def test_hooks_that_a_file_does_not_get_are_warned_of():
    texts = []
    for t in (mt, torch):

        def hook(grad):
            return grad

        tensor = t.ones(1, requires_grad=True)
        tensor.register_hook(t.utils.hooks.unserializable_hook(lambda grad: grad))
        t.utils.hooks.warn_if_has_hooks(tensor)
        tensor.register_hook(hook)
        with pytest.warns(UserWarning, match="will not be serialized") as caught:
            t.utils.hooks.warn_if_has_hooks(tensor)
        texts.append(str(caught[0].message).partition(" on tensor ")[2])
    assert texts[0] == texts[1]


def test_how_grids_are_sampled():
    ours, theirs = mt.nn.functional, torch.nn.functional
    assert ours.GRID_SAMPLE_INTERPOLATION_MODES == theirs.GRID_SAMPLE_INTERPOLATION_MODES
    assert ours.GRID_SAMPLE_PADDING_MODES == theirs.GRID_SAMPLE_PADDING_MODES
