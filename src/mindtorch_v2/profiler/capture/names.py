"""The labels, inputs of calls and stacks that the numbers in records stand for. Those of a recording are freed with it."""

from __future__ import annotations

from collections import ChainMap

from . import labels
from .operators import call_inputs
from .scopes import node_scopes
from .source import Findings, Source
from .stacks import stack_walk

__all__ = ["Names"]


class Names(Source):
    """The tables that records refer to."""

    def begin(self) -> None:
        call_inputs.forget_if_many()
        self.discard()

    def take(self, findings: Findings) -> None:
        findings.stacks = {number: stack_walk.resolve(frames) for number, frames in list(stack_walk.taken.items())}
        findings.labels = labels.table()
        # by the time that records are read, another recording may have begun the table anew
        inputs = dict(call_inputs.table) if findings.read_later else call_inputs.table
        findings.inputs = ChainMap(call_inputs.take_texts(), inputs)
        self.discard()

    def discard(self) -> None:
        labels.clear()
        node_scopes.forget_names()
        call_inputs.take_texts()
        stack_walk.forget()
