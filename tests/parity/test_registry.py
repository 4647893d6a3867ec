"""Every operator of the registry against torch's operator of the same name, on samples caught from the database."""

import warnings

import pytest

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]

# Drawn from a generator, or whatever the memory held: values are compared elsewhere.
UNDEFINED = ("empty", "new_empty", "resize", "_fused_dropout", "native_dropout", "record_stream")


def our_operators():
    from mindtorch_v2._dispatch import registry

    return [op for op in registry.all_ops() if op.schema.namespace == "aten"]


@pytest.fixture(scope="module")
def samples():
    import capture
    import torch
    from samples import EXTRA

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    kept = {}
    with capture.capturing(kept, per_op=4, largest=3000):
        capture.run_database()
        for call in EXTRA:
            call()
    return kept


def test_every_operator_has_a_sample(samples):
    import capture

    missing = sorted(capture.label(op) for op in our_operators() if not samples.get(capture.label(op)))
    assert not missing, f"add calls that reach them to tests/parity/samples.py: {missing}"


def test_every_operator_exists_in_torch_with_the_same_overload():
    from samples import OURS, torch_overload

    invented = sorted({op.qualified_name for op in our_operators() if torch_overload(op) is None} - set(OURS))
    assert not invented


def test_every_operator_gives_torchs_values_and_dtypes(samples):
    import capture
    import opinfo
    import torch
    from samples import DIFFERENT, to_torch, torch_overload

    import mindtorch_v2 as mt

    wrong = []
    for op in our_operators():
        name = capture.label(op)
        theirs = torch_overload(op)
        if theirs is None or op.name.strip("_").startswith(UNDEFINED) or op.name in DIFFERENT:
            continue
        for sample in samples.get(name, []):
            try:
                torch.manual_seed(0)
                expected = theirs(*to_torch(op, sample), **to_torch(op, sample, keywords=True))
            except Exception:
                continue
            try:
                mt.manual_seed(0)
                ours = op.table[_keys(op, sample)](*[capture.copied(a) for a in sample])
                opinfo.assert_same(ours, expected, 1e-4, 1e-5)
            except Exception as error:
                wrong.append(f"{name}: {str(error).strip().splitlines()[-1] if str(error) else type(error).__name__}")
                break
    assert not wrong, f"{len(wrong)} operators differ:\n" + "\n".join(wrong)


def _keys(op, sample):
    from mindtorch_v2._ops.calling import argument_keys

    return argument_keys(op, sample)
