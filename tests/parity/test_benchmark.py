"""torch.utils.benchmark: the same texts, tables and fuzzed tensors."""

import re

import pytest
import torch
import torch.utils.benchmark

import mindtorch_v2 as mt
import mindtorch_v2.utils.benchmark

pytestmark = pytest.mark.parity


def measured(b, times, number=1, **task):
    return b.Measurement(number, times, b.TaskSpec(task.pop("stmt", "x + y"), task.pop("setup", "pass"), **task))


MEASUREMENTS = [
    ([1e-5], 1, {}),
    ([1e-5, 1.2e-5, 3e-5, 2e-5, 1.1e-5], 10, {"label": "L", "sub_label": "S"}),
    ([1.0, 1.001, 1.002, 1.0005], 1, {"stmt": "a\nb", "setup": "c\nd", "description": "D", "num_threads": 2}),
    ([2e-3, 2.1e-3], 7, {"env": "e", "stmt": "z"}),
    ([1e-5 * (1 + i % 3 / 10) for i in range(8)], 1, {"label": "A", "sub_label": "one", "description": "p"}),
    ([3e-5] * 4, 1, {"label": "A", "sub_label": "one", "description": "q"}),
    ([2.2e-4] * 4, 1, {"label": "A", "sub_label": "two", "description": "q"}),
    ([2.2e-4] * 4, 1, {"label": "A", "sub_label": "two", "description": "q", "num_threads": 4}),
    ([1e-3], 1, {"label": "B", "description": "r"}),
]


@pytest.mark.parametrize("index", range(len(MEASUREMENTS)))
def test_measurements(index):
    def outcome(lib):
        times, number, task = MEASUREMENTS[index]
        m = measured(lib.utils.benchmark, times, number, **task)
        text = re.sub(r"<.*>", "", repr(m))
        return (
            text,
            m.significant_figures,
            m.has_warnings,
            m.title,
            m.env,
            m.as_row_name,
            m.meets_confidence(0.5),
            round(m.median, 9),
        )

    assert outcome(mt) == outcome(torch)


OPTIONS = ["", "trim", "colour", "rows", "warn", "trim colour warn"]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("envs", [False, True])
def test_tables(options, envs):
    def outcome(lib):
        b = lib.utils.benchmark
        results = [measured(b, times, number, **task) for times, number, task in MEASUREMENTS if "description" in task]
        if envs:
            results = [
                measured(b, [1e-5, 2e-5, 3e-5], env="short", description="p"),
                measured(b, [1e-5], env="longer", description="p", stmt="z"),
                measured(b, [4e-5], env="longer", description="p", stmt="y"),
            ]
        compare = b.Compare(results)
        for option, call in {
            "trim": compare.trim_significant_figures,
            "colour": compare.colorize,
            "rows": lambda: compare.colorize(rowwise=True),
            "warn": compare.highlight_warnings,
        }.items():
            if option in options:
                call()
        return str(compare)

    assert outcome(mt) == outcome(torch)


def test_fuzzed_tensors():
    def outcome(lib):
        b = lib.utils.benchmark
        fuzzer = b.Fuzzer(
            [
                b.FuzzedParameter("a", 1, 64, "loguniform"),
                [b.FuzzedParameter("b", 1, 9, "uniform"), b.FuzzedParameter("c", 0.0, 1.0, "uniform")],
                b.FuzzedParameter("d", 1, 3, "uniform", strict=True),
            ],
            [
                b.FuzzedTensor("x", ("a", "b", 2), steps=(1, "d"), max_elements=300, min_elements=4, dim_parameter="d"),
                b.FuzzedTensor("y", ("a",), dtype=lib.int64),
            ],
            seed=7,
        )
        found = []
        for tensors, facts, params in fuzzer.take(8):
            shown = {k: (tuple(t.shape), t.stride(), t.double().flatten().tolist()) for k, t in tensors.items()}
            found.append((shown, {k: {n: str(v) for n, v in f.items()} for k, f in facts.items()}, params))
        return found, fuzzer.rejection_rate

    assert outcome(mt) == outcome(torch)
