"""`advise`: what could be faster, read from a recording.

    print(advise(prof))

facts     the columns of a recording, as rules look at them; kinds of events in it
sizes     how much work a call is
outside   the time outside operators; functions and source say what the program does there
owners    who keeps a graph alive
parts     the largest part of the time that no rule explains
asking    all rules, one recording
registry  what a rule is, and the rules there are
rules     one module a subject
findings  what was found: data alone
text      findings as people read them
"""

from __future__ import annotations

from . import rules  # for those that it registers
from .asking import advise
from .facts import Facts
from .findings import Advice, Evidence, Finding, NotChecked, Part
from .registry import RULES, Match, Rule, rule

__all__ = ["RULES", "Advice", "Evidence", "Facts", "Finding", "Match", "NotChecked", "Part", "Rule", "advise", "rule"]
