"""torch.fx: functions and modules as graphs that can be read, changed and run."""

from __future__ import annotations

from . import graph_module as graph_module
from . import node as node
from . import proxy as proxy
from ._symbolic_trace import Tracer, symbolic_trace, wrap
from .graph import CodeGen, Graph
from .graph_module import GraphModule
from .immutable_collections import immutable_dict as immutable_dict
from .immutable_collections import immutable_list as immutable_list
from .interpreter import Interpreter, Transformer
from .node import Node, has_side_effect, map_arg
from .proxy import Proxy
from .subgraph_rewriter import replace_pattern

__all__ = [
    "CodeGen",
    "Graph",
    "GraphModule",
    "Interpreter",
    "Node",
    "Proxy",
    "Tracer",
    "Transformer",
    "has_side_effect",
    "map_arg",
    "replace_pattern",
    "symbolic_trace",
    "wrap",
]
