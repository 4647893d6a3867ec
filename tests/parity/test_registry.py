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
def caught():
    import capture
    import torch
    from extra_calls import EXTRA

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    kept = {}
    with capture.capturing(kept, per_op=4, largest=3000):
        capture.run_database()
        for call in EXTRA:
            call()
    return kept


@pytest.fixture(scope="module")
def compared(caught):
    """Operator → what differs from torch on its samples, or None when torch accepts no sample of it."""
    from samples import SPARSE, torch_overload

    operators = [op for op in our_operators() if op.name not in SPARSE]
    return {op: _differences(op, theirs, caught) for op in operators if (theirs := torch_overload(op)) is not None}


def _differences(op, theirs, caught, enough=4):
    """Call both with the samples caught, those of the functional variant, or made up from the schema, until enough were right."""
    import capture
    from samples import generated

    found, tried = [], 0
    functional = capture.label(op).replace("_.", ".")
    sources = [caught.get(capture.label(op), []), caught.get(functional, []), generated(op)]
    for source in sources:
        for sample in source:
            outcome = _compare(op, theirs, sample)
            if outcome is None:
                continue
            tried += 1
            found += outcome
            if tried >= enough or found:
                return found
        if tried:
            break
    return found if tried else None


def _compare(op, theirs, sample):
    """What differs, as a list of one text; None when torch refuses the sample."""
    import capture
    import opinfo
    import torch
    from samples import to_torch

    import mindtorch_v2 as mt

    try:
        torch.manual_seed(0)
        expected = theirs(*to_torch(op, sample), **to_torch(op, sample, keywords=True))
    except Exception:
        return None
    try:
        mt.manual_seed(0)
        ours = op.table[_keys(op, sample)](*[capture.copied(a) for a in sample])
        if not op.name.strip("_").startswith(UNDEFINED):
            opinfo.assert_same(ours, expected, 1e-4, 1e-5)
    except Exception as error:
        return [str(error).strip().splitlines()[-1] if str(error).strip() else type(error).__name__]
    return []


def test_every_operator_exists_in_torch_with_the_same_overload():
    from samples import OURS, torch_overload

    invented = sorted(
        {f"{op.qualified_name}.{op.overload_name}" for op in our_operators() if torch_overload(op) is None} - set(OURS)
    )
    assert not invented


def test_every_operator_has_a_sample(compared):
    import capture

    missing = sorted(capture.label(op) for op, differences in compared.items() if differences is None)
    assert not missing, f"add calls that reach them to tests/parity/samples.py: {missing}"


def test_every_operator_gives_torchs_values_and_dtypes(compared):
    import capture
    from samples import DIFFERENT

    wrong = [f"{capture.label(op)}: {d[0]}" for op, d in compared.items() if d and op.name not in DIFFERENT]
    assert not wrong, f"{len(wrong)} operators differ:\n" + "\n".join(wrong)


def _keys(op, sample):
    from mindtorch_v2._ops.calling import argument_keys

    return argument_keys(op, sample)
