"""Bodies: the facts that layers go by are those of the lines, and a name stands for one thing."""

import inspect
import linecache

import pytest

from mindtorch_v2._dispatch import dispatcher, keys, registry
from mindtorch_v2._dispatch.codegen import Body, OwnArray, compile_function, indent
from mindtorch_v2.profiler.capture.execution_trace import execution_layer

assert execution_layer  # registers its layer

GRAD = keys.CPU | keys.AUTOGRAD
MODES = keys.SAVED_HOOKS | keys.INFERENCE | keys.DISPATCH_MODE | keys.FUNCTION_MODE | keys.SUBCLASS
EVERYTHING = GRAD | MODES | keys.OBSERVING
KEYS = [keys.CPU, keys.CPU | keys.NUMBER, keys.META, GRAD, GRAD | keys.INFERENCE, GRAD | keys.PYTHON, GRAD | MODES, EVERYTHING]


@pytest.mark.parametrize("full", KEYS, ids=keys.describe)
def test_facts_are_those_of_the_lines(full):
    for op in registry.and_variants():
        body = dispatcher._body(op, full)
        noted = full & keys.RECORD_STORAGES  # by lines in place of those
        assert body.owns_array == any("s.memory =" in line if noted else isinstance(line, OwnArray) for line in body.lines), op
        assert body.makes_node == any("seq_ = next_sequence()" in line for line in body.lines), op


def test_every_line_that_gives_a_storage_its_array_is_known_as_one():
    for op in registry.and_variants():
        for line in dispatcher._body(op, GRAD).lines:
            assert isinstance(line, OwnArray) or not line.lstrip().startswith("s.array ="), op


def test_a_new_result_is_a_kernels_own():
    add, select, zeros = (
        registry.find(f"aten::{name}", overload) for name, overload in (("add", "Tensor"), ("select", "int"), ("zeros", "default"))
    )
    assert dispatcher._body(add, GRAD).result_is_new
    assert dispatcher._body(add, GRAD | keys.PROFILER).result_is_new
    assert not any(
        dispatcher._body(add, GRAD | key).result_is_new
        for key in (keys.DISPATCH_MODE, keys.FUNCTION_MODE, keys.SUBCLASS, keys.PYTHON)
    )
    assert not dispatcher._body(select, GRAD).result_is_new
    assert not dispatcher._body(zeros, keys.CPU).result_is_new  # an unusual argument goes to its composite


def test_names_of_layers_that_mean_different_things_are_refused():
    body = Body(["result = f(x)"], {"f": abs})
    assert body.edited(body.lines, {"f": abs, "g": max}).names == {"f": abs, "g": max}
    with pytest.raises(ValueError, match="rename"):
        body.edited(body.lines, {"f": max})


def test_editing_keeps_the_facts():
    body = Body(["pass"], {}, calls_operators=True, makes_node=True, owns_array=True, result_is_new=True)
    assert body.edited(["try:", *indent(body.lines)]) == Body(
        ["try:", "    pass"], {}, calls_operators=True, makes_node=True, owns_array=True, result_is_new=True
    )


def test_other_lines_in_place_of_the_one_that_owns_the_array():
    own = OwnArray("s.array = a")
    body = Body(["if x:", *indent(["try:", *indent([own]), "finally:", "    pass"]), own])
    assert body.owning_by(["one", "two"]) == [
        "if x:",
        "    try:",
        "        one",
        "        two",
        "    finally:",
        "        pass",
        "one",
        "two",
    ]


def test_a_function_has_its_source_and_a_namespace_of_its_own():
    names = {"two": 2}
    function = compile_function("add", "x", ["return x + two"], names, title="addition")
    assert function(1) == 3
    assert names == {"two": 2}
    assert "add" not in function.__globals__  # a function that owned itself would wait for the garbage collector
    assert inspect.getsource(function) == "def add(x):\n    return x + two\n"
    assert function.__code__.co_filename.startswith("<mindtorch_v2 addition ")
    linecache.clearcache()
    again = compile_function("add", "x", ["return x + two"], names, title="addition")
    assert again.__code__.co_filename == function.__code__.co_filename
    assert inspect.getsource(function) == "def add(x):\n    return x + two\n"
