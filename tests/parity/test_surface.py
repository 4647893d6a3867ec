"""The table of public names: what counts as here, and that the page is of today."""

import contextlib
import re
import types
from pathlib import Path

import pytest
import surface
import torch

import mindtorch_v2 as mt
from mindtorch_v2._refusals import refuse, refused

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]

PAGE = Path(__file__).parents[2] / "docs" / "compatibility.md"


def test_what_only_refuses_is_no_name_that_is_here():
    class Made:
        def __init__(self):
            raise NotImplementedError("no")

    class Using:
        def __init__(self, x):
            if x:
                refuse("x", "y")

    made = refused("mindtorch_v2.x", "why", functions="f", classes="C")
    assert all(map(surface.is_refusal, [made["f"], made["C"], Made]))
    assert surface.merely_raises(Made)
    assert not any(map(surface.merely_raises, [Using, mt.add, mt.nn.Linear]))
    assert not any(map(surface.is_refusal, [Using, mt.add, mt.nn.Linear, mt.float32, 3, mt.cuda.is_available]))


def test_every_namespace_is_compared():
    by_name = {names.namespace: names for names in map(surface.compare, ["torch", "nn", "distributed", "linalg"])}
    assert "add" in by_name["torch"].here
    assert "DistributedDataParallel" not in by_name["nn"].here
    assert "init_process_group" in by_name["distributed"].here
    assert "rpc" in by_name["distributed"].refused
    assert by_name["linalg"].absent == []


def test_the_share_of_names():
    found = [surface.compare(namespace) for namespace in surface.NAMESPACES]
    here = sum(len(n.here) for n in found)
    # a module is an attribute of its package as soon as anyone has imported it
    absent = [f"{n.namespace}.{name}" for n in found for name in n.absent if not _is_module(n.namespace, name)]
    assert not absent
    assert here / sum(n.total for n in found) > 0.88


def _is_module(namespace, name):
    return isinstance(getattr(surface._module(torch, namespace), name), types.ModuleType)


# What a function is tried with, until one of these fits it.
ARGUMENTS = [(), (0,), ("x",), (0, 0), (torch.ones(2),)]


@pytest.mark.parametrize("namespace", surface.NAMESPACES)
def test_a_name_that_merely_raises_does_so_in_torch(namespace):
    here = surface.compare(namespace).here
    ours = surface._module(mt, namespace) if here else None  # of some namespaces there is nothing
    theirs = surface._module(torch, namespace)
    for name in here:
        if surface.merely_raises(getattr(ours, name)):
            assert not _works(getattr(theirs, name), [torch.ones(2)] if namespace == "Tensor" else []), name


def _works(function, first):
    """Whether a function returns for any of the arguments that are tried."""
    for arguments in ARGUMENTS:
        try:
            with contextlib.ExitStack() as stack:
                result = function(*first, *arguments)
                if isinstance(result, contextlib.AbstractContextManager):
                    stack.enter_context(result)
        except TypeError:
            continue
        except Exception:
            return False
        return True
    return False


def test_the_page_has_the_table():
    rows = re.findall(r"^\| `(torch[\w.]*)` \| (\d+) \| (\d+) \| (\d+) \| (\d+)", PAGE.read_text(), re.M)
    assert len(rows) == len(surface.NAMESPACES)
