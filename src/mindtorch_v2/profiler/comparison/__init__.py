"""What changed between two runs of a program.

call_tree   the calls of a session's steps, laid on top of each other: one node for each place in a step
matching    which node of one tree is which of the other
side_work   what other threads and processes do beside the steps
evidence    whether a difference of times is more than noise
comparison  the changes: data alone
text        changes as people read them, in a terminal and in Markdown
"""

from __future__ import annotations

from .comparison import Change, Comparison, compare

__all__ = ["Change", "Comparison", "compare"]
