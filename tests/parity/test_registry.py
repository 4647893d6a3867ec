"""Every operator of the registry against torch's overload of the same name, on samples caught from the database.

Values and dtypes, strides, what shares memory, names of nodes, first and second gradients, and errors about bad arguments.
"""

from pathlib import Path

import pytest

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]

KINDS = ("value", "strides", "sharing", "graph", "gradient", "second")


def our_operators():
    from mindtorch_v2._dispatch import registry

    return [op for op in registry.all_ops() if op.schema.namespace == "aten"]


@pytest.fixture(scope="module")
def caught():
    import capture

    return capture.for_registry()


@pytest.fixture(scope="module")
def compared(caught):
    """Operator → report."""
    from registry_compare import compare_all

    return compare_all(our_operators(), caught)


@pytest.fixture(scope="module")
def errors(caught):
    """Label → report about bad arguments."""
    from registry_compare import compare_errors

    return compare_errors(our_operators(), caught)


def test_every_operator_exists_in_torch_with_the_same_overload():
    from samples import OURS, torch_overload

    invented = sorted(
        {f"{op.qualified_name}.{op.overload_name}" for op in our_operators() if torch_overload(op) is None} - set(OURS)
    )
    assert not invented


def test_every_operator_has_a_sample(compared):
    import capture

    missing = sorted(capture.label(op) for op, report in compared.items() if not report.samples)
    assert not missing, f"add calls that reach them to tests/parity/extra_calls.py: {missing}"


@pytest.mark.parametrize("kind", KINDS)
def test_every_operator_is_as_torchs(compared, kind):
    import capture
    from registry_known import KNOWN

    found = {capture.label(op): report.differences[kind][0] for op, report in compared.items() if kind in report.differences}
    wrong = [f"{label}: {text}" for label, text in found.items() if label not in KNOWN[kind]]
    assert not wrong, f"{kind} of {len(wrong)} operators:\n" + "\n".join(wrong)
    settled = sorted(set(KNOWN[kind]) - set(found))
    assert not settled, f"as torch's after all; take them out of registry_known.py: {settled}"


def test_every_formula_is_compared(compared):
    """An operator with a derivative, and no sample that needs it, would pass unseen."""
    import capture

    from mindtorch_v2._ops.machinery.declare import MissingDerivative

    unseen = sorted(
        capture.label(op)
        for op, report in compared.items()
        if any(not isinstance(f.function, MissingDerivative) for f in op.formulas) and not report.counts["gradient"]
    )
    assert not unseen


def test_errors_are_of_torchs_type(errors):
    """What is still taken or refused otherwise is counted by operator in error_gaps.txt; nothing may be added to it."""
    gaps = _gaps()
    found = {label: report.differences["error"] for label, report in errors.items() if "error" in report.differences}
    worse = [f"{label} ({len(texts)}): {texts[0]}" for label, texts in found.items() if len(texts) > gaps.get(label, 0)]
    assert not worse, f"errors of {len(worse)} operators:\n" + "\n".join(worse)
    settled = sorted(set(gaps) - set(found))
    assert not settled, f"as torch's after all; take them out of error_gaps.txt: {settled}"


def test_torchs_accidents_still_happen(errors):
    from registry_errors import ACCIDENTAL_ANSWERS, ACCIDENTAL_REFUSALS, ACCIDENTAL_TYPES, TORCH_CRASHES

    seen = {text for report in errors.values() for text in report.counts}
    listed = [*ACCIDENTAL_ANSWERS, *ACCIDENTAL_REFUSALS, *ACCIDENTAL_TYPES, *TORCH_CRASHES]
    settled = [entry for entry in listed if f"torch {entry[2]}" not in seen]
    assert not settled, f"torch does not do that any more; take them out of registry_errors.py: {settled}"


def test_errors_are_about_arguments_not_about_arrays(errors):
    """No text of NumPy's, SciPy's or Python's about what goes on inside of an operator."""
    found = [f"{label}: {text}" for label, report in errors.items() for text in report.differences.get("text", ())]
    assert not found, f"{len(found)} errors:\n" + "\n".join(found)


def test_a_text_of_numpys_is_found():
    import numpy as np
    from registry_errors import foreign

    def failing(call):
        try:
            call()
        except Exception as error:
            return error

    assert foreign(failing(lambda: np.ones(2) + np.ones(3)))
    assert foreign(failing(lambda: np.linalg.inv(np.zeros((2, 2)))))  # raised by NumPy's own code
    assert not foreign(failing(lambda: _raise(RuntimeError("mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)"))))


def _raise(error):
    raise error


def _gaps():
    lines = (Path(__file__).parent / "error_gaps.txt").read_text().splitlines()
    return {label: int(count) for label, count in (line.split() for line in lines if not line.startswith("#"))}


def test_a_wrong_operator_is_found():
    """The comparison itself: `sin` against torch's `cos` differs in value and in gradient, and only there."""
    import registry_compare
    import torch

    import mindtorch_v2 as mt
    from mindtorch_v2._dispatch import registry

    sine = registry.find("aten::sin", "default")
    report = registry_compare.compare(sine, torch.ops.aten.cos.default, {"aten::sin.default": [(mt.linspace(0.1, 1, 4),)]})
    assert set(report.differences) == {"value", "graph", "gradient", "second"}


def test_a_missing_refusal_is_found():
    """Mutations of a good sample are refused by torch: a longer operand, a dimension that is not there."""
    import registry_errors
    import torch

    import mindtorch_v2 as mt
    from mindtorch_v2._dispatch import registry

    softmax = registry.find("aten::softmax", "int")
    sample = (mt.ones(2, 3), 1, None)
    refused = []
    for change, mutated in registry_errors.mutations(softmax, sample):
        try:
            torch.ops.aten.softmax.int(torch.from_numpy(mutated[0].numpy()), mutated[1])
        except Exception as error:
            refused.append((change, type(error)))
    assert ("dim far", IndexError) in refused
    assert ("dim far below", IndexError) in refused
