"""Every module of `torch.nn`, made and called as PyTorch's own table of modules does, against torch's."""

import copy
import io

import pytest

import mindtorch_v2 as mt

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]


def names():
    import module_samples

    return module_samples.NAMES


def tensors(x):
    from module_comparison import flat

    return [t for t in flat(x) if hasattr(t, "requires_grad")]


def tensors_of(lib, module):
    """Copies of a module's parameters and buffers, as far as they have a shape."""
    lazy = lib.nn.parameter.UninitializedTensorMixin
    return {key: None if isinstance(value, lazy) else value.clone() for key, value in module.state_dict().items()}


def outcome(lib, cls, args, options, inputs, named, training):
    """The text and state of a module from a seed, its results, and the gradients of inputs and parameters."""
    lib.manual_seed(3)
    module = getattr(lib.nn, cls)(*args, **options).train(training)
    state = tensors_of(lib, module)
    module.double()
    leaves = [t for t in tensors([inputs, named]) if t.requires_grad]
    lib.manual_seed(5)
    results = tensors([module(*inputs, **named)])
    sums = [(t * lib.arange(1.0, t.numel() + 1, dtype=t.real.dtype).reshape(t.shape)).sum() for t in results if t.requires_grad]
    if sums:
        sum(t.abs() if t.is_complex() else t for t in sums).backward()
    grads = {key: p.grad for key, p in module.named_parameters()}
    after = tensors_of(lib, module)
    text = repr(module).replace("mindtorch_v2", "torch")
    return text, state, results, [t.grad for t in leaves], grads, after


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("name", names())
def test_a_module(name, training):
    import torch
    from module_comparison import same
    from module_samples import leaves, samples, translated

    count = 0
    for args, options, inputs, named in samples(name, training):
        ours = translated((args, options, inputs, named))
        expected = outcome(torch, name, copy.deepcopy(args), options, leaves(inputs), leaves(named), training)
        found = outcome(mt, name, *ours, training)
        assert found[0] == expected[0]
        assert list(found[1]) == list(expected[1])
        same(found[1], expected[1], exact=True)
        for ours_part, part in zip(found[2:], expected[2:], strict=True):
            same(ours_part, part)
        count += 1
    assert count


def test_every_module_has_a_sample():
    import torch
    from module_samples import WITHOUT_CALL

    assert set(torch.nn.modules.__all__) - set(names()) == WITHOUT_CALL


@pytest.mark.parametrize("name", names())
def test_a_whole_module_in_a_file_of_the_other(name):
    """Saved by either, loaded and called by the other: its text, and the results of the writer in eval mode."""
    import torch
    from module_comparison import same
    from module_samples import leaves, samples, translated

    # functions of torch that a module holds are pickled by their names: both libraries know these, what is made in a sample has none
    for args, options, inputs, named in samples(name, training=False):
        given = {
            torch: (copy.deepcopy(args), options, leaves(inputs), leaves(named)),
            mt: translated((args, options, inputs, named)),
        }
        for writer, reader in ((mt, torch), (torch, mt)):
            writer.manual_seed(3)
            module = getattr(writer.nn, name)(*given[writer][0], **given[writer][1]).eval()
            file = io.BytesIO()
            if any(getattr(value, "__name__", "") == "<lambda>" for value in options.values()):
                continue  # has no name that a pickle could have
            writer.save(module, file)
            file.seek(0)
            loaded = reader.load(file, weights_only=False)
            assert type(loaded) is getattr(reader.nn, name)
            assert repr(loaded).replace("mindtorch_v2", "torch") == repr(module).replace("mindtorch_v2", "torch")
            results = {}
            for lib, each in ((writer, module), (reader, loaded)):
                lib.manual_seed(5)  # of weights that are drawn at the first call
                results[lib] = tensors([each.double()(*given[lib][2], **given[lib][3])])
            for ours, theirs in zip(results[mt], results[torch], strict=True):
                same(ours, theirs)
