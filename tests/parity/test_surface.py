"""The table of public names: what counts as here, and that the page is of today."""

import re
from pathlib import Path

import pytest
import surface

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
    here, absent = sum(len(n.here) for n in found), sum(len(n.absent) for n in found)
    assert here / (here + absent) > 0.8


def test_the_page_has_the_table():
    rows = re.findall(r"^\| `(torch[\w.]*)` \| (\d+) \| (\d+) \| (\d+) \| (\d+)", PAGE.read_text(), re.M)
    assert len(rows) == len(surface.NAMESPACES)
