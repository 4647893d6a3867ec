"""Execution traces of the same program, ours and torch's: node by node the same, but for what is known to differ and why.

`python tests/parity/execution_trace_comparison.py` prints all differences.
"""

import json
import statistics

import pytest

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def comparisons():
    from execution_trace_comparison import compare
    from profile_programs import PROGRAMS

    examples = [f"examples/{name}.py" for name in ("cnn", "gpt", "loader", "mlp", "profile_training")]
    return [compare(program) for program in [*examples, *PROGRAMS]]


@pytest.fixture(scope="module")
def straight(comparisons):
    """Those in which operators run in the same order."""
    from execution_trace_comparison import CROSSWISE

    return [c for c in comparisons if c.program not in CROSSWISE]


def test_nodes_have_partners(comparisons):
    assert statistics.mean(c.score() for c in comparisons) >= 0.97
    assert sum(len(c.pairs) for c in comparisons) > 5000
    examples = {c.program: c for c in comparisons}
    for name in ("mlp", "cnn", "gpt", "profile_training"):
        assert examples[f"examples/{name}.py"].score() > 0.99


@pytest.mark.parametrize("fact", ["scope", "thread"])
def test_scopes_and_threads(comparisons, fact):
    assert [(c.program, a.name) for c in comparisons for a, _ in c.differences(fact)] == []


def test_arguments(comparisons):
    """Schemas, types, shapes, strides, values of numbers and texts, offsets, sizes and devices."""
    assert [f"{c.program}: {text}" for c in comparisons for text in c.unexplained()] == []


def test_results(straight):
    assert [f"{c.program}: {text}" for c in straight for text in c.other_results()] == []


@pytest.mark.parametrize("which", [0, 1], ids=["tensors", "storages"])
def test_numbers_of_tensors_are_torchs_up_to_renaming(straight, which):
    found = {c.program: c.dataflow(which) for c in straight}
    assert {program: wrong for program, (wrong, _) in found.items() if wrong} == {}
    assert sum(count for _, count in found.values()) > 6000


def test_backward_nodes_belong_to_the_same_operators(straight):
    assert {c.program: c.sequences() for c in straight if c.sequences()} == {}


def test_what_is_said_to_differ_does(comparisons):
    from execution_trace_comparison import CROSSWISE, FACTS, OTHER_RESULTS, OTHER_TENSORS, reason

    differing = {(c.program, a.name) for c in comparisons for fact in FACTS for a, _ in c.differences(fact)}
    assert differing >= OTHER_TENSORS.keys() | OTHER_RESULTS.keys()
    unexplained = {
        (c.program, a.name) for c in comparisons for fact in FACTS for a, b in c.differences(fact) if reason(a, b) is None
    }
    assert unexplained >= OTHER_TENSORS.keys()
    for c in comparisons:
        if c.program in CROSSWISE:
            assert c.dataflow(0)[0] or c.dataflow(1)[0]


class TestTheComparison:
    """It notices what is changed."""

    @pytest.fixture
    def example(self, tmp_path):
        import torch
        from profile_comparison import plain_torch

        observer = torch.profiler.ExecutionTraceObserver().register_callback(str(tmp_path / "t.json"))
        linear, x = torch.nn.Linear(3, 2), torch.ones(4, 3)
        with plain_torch():
            observer.start()
            linear(x).sum().backward()
            observer.unregister_callback()
        return json.loads((tmp_path / "t.json").read_text())

    def compared(self, example, tmp_path, change):
        from execution_trace_comparison import Comparison, pair_up, read

        other = json.loads(json.dumps(example))
        for node in other["nodes"]:
            change(node)
        for name, content in (("a.json", example), ("b.json", other)):
            (tmp_path / name).write_text(json.dumps(content))
        found = Comparison("")
        pair_up(read(tmp_path / "a.json"), read(tmp_path / "b.json"), found)
        return found

    def test_nothing(self, example, tmp_path):
        found = self.compared(example, tmp_path, lambda node: None)
        assert found.score() == 1
        assert not found.unexplained()
        assert not found.other_results()
        assert not found.sequences()
        assert found.dataflow(0)[0] == found.dataflow(1)[0] == []

    def test_a_name(self, example, tmp_path):
        def change(node):
            node["name"] = node["name"].replace("aten::addmm", "aten::other")

        assert self.compared(example, tmp_path, change).score() < 1

    def test_an_argument(self, example, tmp_path):
        def change(node):
            if node["name"] == "aten::addmm":
                node["inputs"]["values"][3] = 7

        assert self.compared(example, tmp_path, change).unexplained()

    def test_a_result(self, example, tmp_path):
        def change(node):
            if node["name"] == "aten::addmm":
                node["outputs"]["strides"][0] = [1, 1]

        assert self.compared(example, tmp_path, change).other_results()

    @pytest.mark.parametrize("which", [0, 1])
    def test_the_number_of_a_tensor(self, example, tmp_path, which):
        def change(node):
            if node["name"] == "aten::linear":
                node["inputs"]["values"][0][which] += 1000

        assert self.compared(example, tmp_path, change).dataflow(which)[0]

    def test_two_tensors_with_one_number(self, example, tmp_path):
        def change(node):
            for side in ("inputs", "outputs"):
                for value in node[side]["values"]:
                    if isinstance(value, list) and len(value) == 6:
                        value[0] = 5

        assert self.compared(example, tmp_path, change).dataflow(0)[0]

    def test_the_operator_of_a_node(self, example, tmp_path):
        def change(node):
            for attribute in node["attrs"]:
                if node["name"] == "AddmmBackward0" and attribute["name"] == "seq_id":
                    attribute["value"] += 1

        assert self.compared(example, tmp_path, change).sequences()


def test_schemas_are_torchs():
    """Every operator here has the schema that torch's traces show, but for defaults that Python fills in."""
    import torch

    from mindtorch_v2._dispatch import registry
    from mindtorch_v2.profiler.capture.execution_trace.execution_values import schema_text, takes_generator

    known = {
        "aten::slice_backward": "bounds that are not there stay so",
        **dict.fromkeys(("aten::randint", "aten::randperm", "aten::tril_indices", "aten::triu_indices"), "the default dtype"),
    }
    wrong = []
    for op in registry.all_ops():
        if op.schema.namespace != "aten":
            continue
        for with_generator in {False, any(takes_generator(op, a) for a in op.schema.arguments)}:
            text = schema_text(op, with_generator=with_generator)
            name, _, overload = text.partition("(")[0].removeprefix("aten::").partition(".")
            packet = getattr(torch.ops.aten, name)
            if (overload or "default") not in packet.overloads() or (
                text != str(getattr(packet, overload or "default")._schema) and op.qualified_name not in known
            ):
                wrong.append(text)
    assert wrong == []
