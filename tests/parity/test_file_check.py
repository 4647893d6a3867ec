"""`FileCheck` accepts and refuses what PyTorch's does, and says the same first and last line."""

import pytest
import torch
from torch.testing import FileCheck as Theirs

from mindtorch_v2 import FileCheck

pytestmark = pytest.mark.parity

TEXT = "a b\nfoo bar\nbaz\nfoo end\n"
CHAINS = """
c().check("foo").check("baz")
c().check("baz").check("bar")
c().check("foo").check_not("baz").check("end")
c().check("foo").check_not("zzz").check("end")
c().check_next("foo")
c().check("a").check_next("foo")
c().check("a").check_next("baz")
c().check("foo").check_next("bar")
c().check("foo").check_same("bar")
c().check("foo").check_same("baz")
c().check_count("foo", 2)
c().check_count("foo", 2).check("end")
c().check_count("foo", 2, exactly=True)
c().check_count("foo", 1, exactly=True)
c().check_count("foo", 0, exactly=True)
c().check_count("zzz", 0, exactly=True)
c().check_count("foo", 3)
c().check_dag("baz").check_dag("foo").check("end")
c().check_dag("baz").check_dag("zzz")
c().check_dag("end").check_dag("baz").check("a")
c().check_not("b").check_dag("baz").check_dag("foo")
c().check_regex("f.o b")
c().check_regex("fo+ e").check("nd")
c().check_regex("q.x")
c().check_not("foo")
c().check_not("zzz").check_not("foo")
c().check_not("foo").check_dag("baz")
c().check("")
""".strip().splitlines()
COMMENTS = [
    "# CHECK: foo\n# CHECK-NEXT: baz",
    "# CHECK: foo\n# CHECK-NOT: baz\n# CHECK: end",
    "# CHECK-COUNT-2: foo\n# CHECK-SAME: end\n",
    "# CHECK-COUNT-EXACTLY-1: foo\n",
    "#CHECK-DAG: end\n#CHECK-DAG: baz",
    "# CHECK-REGEX: fo+ e",
    "nothing",
    "# CHECKK: foo",
]


def _outcome(cls, chain, *texts):
    made = eval(chain, {"c": cls})
    try:
        return made.run(*texts)
    except RuntimeError as error:
        lines = [line for line in str(error).splitlines() if line.strip()]
        return lines[0].replace("ofFilecheck", "of FileCheck"), lines[-1][lines[-1].find("From CHECK") :]


@pytest.mark.parametrize("chain", CHAINS)
def test_chains(chain):
    assert _outcome(FileCheck, chain, TEXT) == _outcome(Theirs, chain, TEXT)


@pytest.mark.parametrize("comments", COMMENTS)
def test_comments(comments):
    assert _outcome(FileCheck, "c()", comments, TEXT) == _outcome(Theirs, "c()", comments, TEXT)


@pytest.mark.parametrize("text", ["foo bar\n~~~\n", "foo bar\n~~~~~\n", "foo bar\n~~\n", "  foo\n ~~~~\n", "  foo\n  ~~~\n", "foo"])
def test_highlights(text):
    chain = 'c().check_source_highlighted("foo")'
    ours, theirs = _outcome(FileCheck, chain, text), _outcome(Theirs, chain, text)
    assert (ours is None) == (theirs is None)


def test_a_chain_that_was_not_run_says_so(capsys):
    FileCheck().check("a").check_not("b").check_count("c", 2, exactly=True)
    expected = "You have not run this instance of FileCheck!\nFileCheck checks:\n\tCHECK: a\n\tCHECK-NOT: b\n\tCHECK-COUNT-2: c\n\tCHECK-NOT: c\n"
    assert capsys.readouterr().out == expected
    assert torch.FileCheck is Theirs
