"""The Autograd key: extends an operator's body so that its result gets a `Node` with what the formulas asked for.

What a formula saves follows from its parameter names: an argument, a result, or a fact (`self_shape`, `other_dtype`). Of the
tensors, only those that a wanted gradient needs are kept, each with the version of its storage.
"""

from __future__ import annotations

import copy
from typing import Any

from .._dispatch import dispatcher, keys
from .._dispatch.codegen import Body, compile_function, indent
from .._dispatch.entry import NUMBERS
from .._dispatch.op import FACTS, Formula, Op
from .._dispatch.tls import state
from .._tensor import shallow_copy
from . import anomaly, inplace, saved
from .leaf import outside
from .node import Node, Output, edge_of, next_sequence
from .saved_errors import check_versions, released_error, version_error

__all__ = ["autograd_layer"]

A = keys.AUTOGRAD
SLOW = keys.SAVED_HOOKS | keys.INFERENCE  # saving a tensor takes more than storing it


def autograd_layer(op: Op, full: int, body: Body) -> Body:
    """Record a node when grad mode is on; the body below runs either way."""
    if op.composite is not None and not op.formulas and keys.AUTOGRAD not in op.kernels and "no_derivative" not in op.tags:
        return body
    if keys.AUTOGRAD in op.kernels:
        call = dispatcher.call_body(op, op.kernels[keys.AUTOGRAD], "autograd_kernel")
        lines = ["if tls.grad_enabled:", *indent(call.lines), "else:", *indent(body.lines)]
        body = body.edited(lines, {**call.names, "tls": state})
        body.result_is_new = False
        return body
    if not op.formulas:
        return _without_formula(op, body)
    slow = bool(full & SLOW)
    plan = _plan(op, slow)
    if full & keys.NUMBER:
        plan = plan.with_numbers(op.numbers)
    names = {
        "tls": state,
        "NUMBERS": NUMBERS,
        "Node": plan.node_class,
        "new_node": object.__new__,  # 15 ns less than calling the class
        "Output": Output,
        "edge_of": edge_of,
        "next_sequence": next_sequence,
        "shallow_copy": outside if full & (keys.PYTHON | keys.DISPATCH_MODE) else shallow_copy,
        "check_inplace": inplace.check_inplace,
        "rebase_history": inplace.rebase_history,
        "pack": saved.pack,
        "note_creation": anomaly.note_creation,
        "any_edge": _any_edge,
    }
    recording = "tls.grad_enabled and not tls.inference" if slow else "tls.grad_enabled"
    below = body.lines
    if body.calls_operators:
        # those calls must not be recorded
        below = _unrecorded(body.lines)
    refusals = _refusal_lines(op, recording)
    if refusals:
        names["refuse"] = saved.refuse
    if op.schema.is_inplace:
        lines = [f"if {recording}:", *indent(plan.inplace_lines(below)), "else:", *indent(body.lines)]
    elif below is body.lines:
        lines = [*body.lines, f"if {recording}:", *indent(plan.node_lines()), *plan.unrecorded_lines()]
    else:
        lines = [
            f"if {recording}:",
            *indent([*below, *plan.node_lines()]),
            "else:",
            *indent([*body.lines, *plan.unrecorded_lines(branch=False)]),
        ]
    body = body.edited([*refusals, *lines], names)
    body.makes_node = True
    return body


def _unrecorded(lines: list[str]) -> list[str]:
    return ["tls.grad_enabled = False", "try:", *indent(lines), "finally:", "    tls.grad_enabled = True"]


def _refusal_lines(op: Op, recording: str) -> list[str]:
    """Raise about an argument that requires grad and must not."""
    if not op.fixed:
        return []
    return [
        f"if {recording}:",
        *indent(
            [line for n in op.fixed for line in (f"if {n} is not None and {n}._keys & {A}:", f"    refuse({op.name!r}, {n!r})")]
        ),
    ]


def _any_edge(edges: tuple[Any, ...]) -> bool:
    return edges.count(None) != len(edges)


_plans: dict[tuple[Op, bool], _Plan] = {}


def _plan(op: Op, slow: bool) -> _Plan:
    """The same plan, and so the same node class, for every key set of an operator."""
    plan = _plans.get((op, slow))
    if plan is None or plan.formulas is not op.formulas:
        plan = _plans[op, slow] = _Plan(op, slow=slow)
    return plan


def _without_formula(op: Op, body: Body) -> Body:
    """An operator that nobody can differentiate: results of floating type say so in backward."""
    writes_list = op.schema.is_inplace and op.schema.arguments[0].is_tensor_list and "no_derivative" in op.tags
    if op.schema.is_view or not (writes_list or any(r.type.startswith("Tensor") for r in op.schema.returns)):
        return body
    if "nondifferentiable" in op.tags:
        return body
    if op.composite is not None:
        # the operators that it calls have derivatives; it has none
        below = ["if tls.grad_enabled:", *indent(_unrecorded(body.lines)), "else:", *indent(body.lines)]
        body = body.edited(below)
    names = {"tls": state, "mark": saved.mark_not_implemented, "check_inplace": inplace.check_inplace}
    inputs = ", ".join(a.name for a in op.schema.tensor_arguments)
    if op.schema.is_inplace and op.schema.arguments[0].type == "Tensor":
        # what is needed of the history comes before the call, which replaces it
        names["mark"] = saved.mark_written
        names["edges_of"] = saved.edges_of
        lines = ["if tls.grad_enabled:", "    check_inplace(self)", f"    edges = edges_of(({inputs},))", *body.lines]
        return body.edited([*lines, "if tls.grad_enabled:", f"    mark({op.name!r}, self, edges)"], names)
    if op.schema.is_inplace:
        names["mark"] = saved.mark_written_list
    return body.edited([*body.lines, "if tls.grad_enabled:", f"    mark({op.name!r}, result, ({inputs},))"], names)


class _Plan:
    """The values that one operator's node keeps, and the source that fills and reads it."""

    def __init__(self, op: Op, *, slow: bool) -> None:
        self.op = op
        self.slow = slow
        self.formulas = op.formulas
        self.numbers: tuple[str, ...] = ()  # arguments that may be Python numbers
        schema = op.schema
        targets = {t for f in op.formulas for t in f.targets}
        self.inputs = [a for a in schema.arguments if a.name in targets]
        self.outputs = schema.output_names
        self.tensor_names = {a.name for a in schema.tensor_arguments}
        # arguments that the call fills besides `self`: saved after it, as results are
        self.written = {a.name for a in schema.arguments[1:] if a.alias.endswith("!")} if schema.is_inplace else set()
        self.needed: dict[str, list[Formula]] = {}
        for formula in op.formulas:
            for name in formula.parameters:
                if name not in ("grad", "grads", "needs"):
                    self.needed.setdefault(name, []).append(formula)
        self.has_list = any(a.is_tensor_list for a in self.inputs)
        self.multi = len(schema.returns) > 1 or schema.returns[0].type == "Tensor[]"
        self.node_class = _node_class(self)

    def with_numbers(self, names: tuple[str, ...]) -> _Plan:
        """The same plan, and node class, for calls in which one of these arguments is a Python number."""
        plan = copy.copy(self)
        plan.numbers = names
        return plan

    # --- the forward side -----------------------------------------------------------------------------------------

    def _edges(self) -> str:
        parts = []
        for a in self.inputs:
            if a.is_tensor_list:
                parts.append(f"*[edge_of(t) for t in {a.name}]")
            elif self.slow:
                number = f"None if {a.name}.__class__ in NUMBERS else " if a.name in self.numbers else ""
                parts.append(f"{number}edge_of({a.name})")
            else:
                n = a.name
                fresh = f"(base_ := {n}._base) is None or (base_ := base_._extra) is None or not base_.rebased"
                edge = f"({n}._node or {n} if {fresh} else edge_of({n}))"
                absent = f"{n} is None or " if a.type == "Tensor?" else f"{n}.__class__ in NUMBERS or " if n in self.numbers else ""
                parts.append(f"None if {absent}not {n}._keys & {A} else {edge}")
        return f"({', '.join(parts)},)"

    def _wanted(self, name: str) -> str:
        """The condition under which a saved value is needed: some formula that reads it has an edge to feed."""
        flags: set[str] = set()
        for formula in self.needed[name]:
            flags |= set(formula.targets)
        if self.has_list or flags >= {a.name for a in self.inputs}:
            return ""
        tests = [f"edges[{i}] is not None" for i, a in enumerate(self.inputs) if a.name in flags]
        return " or ".join(tests)

    def _save_lines(self, *, results: bool) -> list[str]:
        lines = []
        for name in self.needed:
            is_result = name in self.outputs or name == "result" or any(name == o + f for o in self.outputs for f in FACTS)
            is_result = is_result or name in self.written
            if is_result != results:
                continue
            save = self._save_one(name)
            condition = self._wanted(name) if name in self.tensor_names or name in self.outputs else ""
            lines += [f"if {condition}:", *indent(save)] if condition else save
        return lines

    def _save_one(self, name: str) -> list[str]:
        for fact in FACTS:
            if name.endswith(fact) and name not in self.op.schema.argument_names:
                return [f"node.f_{name} = {_fact(self.op, name[: -len(fact)], fact)}"]
        if name in self.outputs or name == "result":
            return self._save_result(name)
        if name not in self.tensor_names:
            return [f"node.f_{name} = {name}"]
        # the value before an in-place operator, for a formula that needs it
        value = "self.clone()" if name == "self" and self.op.schema.is_inplace else name
        if self.slow:
            return [f"node.s_{name} = pack({value})"]
        argument = self.op.schema.argument(name)
        if argument.is_tensor_list:
            return [f"node.s_{name} = list({name})", f"node.v_{name} = [None if t is None else t._storage.version for t in {name}]"]
        store = [f"s = node.s_{name} = {value}"]
        version = f"node.v_{name} = s._storage.version"
        if name in self.numbers:
            return [*store, "if s.__class__ not in NUMBERS:", f"    {version}"]
        if argument.type == "Tensor?":
            return [*store, "if s is not None:", f"    {version}"]
        return [*store, version]

    def _save_result(self, name: str) -> list[str]:
        if len(self.outputs) == 1:
            value = "result"
        else:
            value = f"result[{self.outputs.index(name)}]"
        # the node must not own its own result: that cycle would keep activations alive until the garbage collector runs
        if name not in self.op.nondifferentiable:
            value = (
                f"[shallow_copy(t) for t in {value}]" if self.op.schema.returns[0].type == "Tensor[]" else f"shallow_copy({value})"
            )
        if self.slow:
            return [f"node.s_{name} = pack({value})"]
        if self.op.schema.returns[0].type == "Tensor[]":
            return [f"s = node.s_{name} = {value}", f"node.v_{name} = [t._storage.version for t in s]"]
        return [f"s = node.s_{name} = {value}", f"node.v_{name} = s._storage.version"]

    def _start(self) -> list[str]:
        lines = ["node = new_node(Node)", "node._seq = seq_ = next_sequence()", "node._edges = edges"]
        if self.slow:
            lines.append("note_creation(node)")
        lines += [f"node.n_{a.name} = len({a.name})" for a in self.inputs if a.is_tensor_list]
        return lines

    def _linked(self, lines: list[str]) -> list[str]:
        """Lines that link a node, after its edges; in the slow variant only when one of them leads somewhere."""
        edges = f"edges = {self._edges()}"
        return [edges, "if any_edge(edges):", *indent(lines)] if self.slow else [edges, *lines]

    def node_lines(self) -> list[str]:
        lines = [*self._start(), *self._save_lines(results=False), *self._save_lines(results=True)]
        returns = self.op.schema.returns
        if not self.multi:
            lines += [
                "node._shape = result._array.shape",
                "node._dtype = result.dtype",
                f"result._keys |= {A}",
                "result._node = node",
            ]
            if self._may_be_integral() and not (returns[0].alias and not self.slow):
                return ["if result.dtype.inexact:", *indent(self._linked(lines))]
            return self._linked(lines)
        outputs = [i for i, name in enumerate(self.outputs) if name not in self.op.nondifferentiable]
        lines += ["node._metas = [None if t is None else (t._array.shape, t.dtype) for t in result]"]
        loop = "enumerate(result)" if len(outputs) == len(self.outputs) else f"[(i, result[i]) for i in {outputs}]"
        lines += [
            f"for i, t in {loop}:",
            "    if t is not None and t.dtype.inexact:",
            f"        t._keys |= {A}",
            "        t._node = Output(node, i)",
        ]
        return self._linked(lines)

    def unrecorded_lines(self, *, branch: bool = True) -> list[str]:
        """torch: a view made in no_grad mode of a tensor that requires grad requires it too, as a leaf of its own."""
        if not self.op.schema.is_view:
            return []
        base = next(a.name for a in self.op.schema.arguments if a.alias)
        test = f"{base}._keys & {A}" + (f" and not {base}._keys & {keys.INFERENCE}" if self.slow else "")
        mark = ["for t in result:", f"    t._keys |= {A}"] if self.multi else [f"result._keys |= {A}"]
        return [f"{'elif' if branch else 'if'} {test}:", *indent(mark)]

    def _may_be_integral(self) -> bool:
        return self.op.schema.name in ("to", "_to_copy", "type_as", "copy", "where", "clone")

    def inplace_lines(self, below: list[str]) -> list[str]:
        reads_self = any(a.name == "self" for a in self.inputs)
        before = [*self._start(), *self._save_lines(results=False)]
        after = [
            *self._save_lines(results=True),
            "node._shape = result._array.shape",
            "node._dtype = result.dtype",
            f"rebase_history(result, node, {reads_self})",
        ]
        if not self.slow:
            return ["check_inplace(self)", f"edges = {self._edges()}", *before, *below, *after]
        lines = [f"edges = {self._edges()}", "wanted = any_edge(edges)", "if wanted:", "    check_inplace(self)", *indent(before)]
        return [*lines, *below, "if wanted:", *indent(after)]

    # --- the backward side ----------------------------------------------------------------------------------------

    def apply_lines(self) -> list[str]:
        lines = []
        saved_tensors = [n for n in self.needed if n in self.tensor_names or n in self.outputs or n == "result"]
        if saved_tensors:
            lines += ["if node._released:", "    raise released_error()"]
        if self.multi:
            lines += ["grads = grad", "grad = grads[0]"]
            if any("grads" in f.parameters for f in self.op.formulas):
                lines += ["if all([g is None for g in grads]):", "    return (None,) * len(edges)"]
        if not self.multi or all("grads" not in f.parameters for f in self.op.formulas):
            lines += ["if grad is None:", "    return (None,) * len(edges)"]
        if not self.multi and any("grads" in f.parameters for f in self.op.formulas):
            lines.append("grads = [grad]")
        for name in saved_tensors:
            lines += self._load_lines(name)
        lines += self._slot_lines()
        # torch computes gradients in the alphabetical order of the arguments' names, which profiles show
        for i, formula in sorted(enumerate(self.op.formulas), key=lambda numbered: numbered[1].targets):
            lines += self._formula_lines(i, formula)
        parts = ["*" + f"g_{a.name}" if a.is_tensor_list else f"g_{a.name}" for a in self.inputs]
        if not self.has_list:
            return [*lines, f"return ({', '.join(parts)},)"]
        # one formula gives as many gradients as the list has tensors
        check = ["if len(found) != len(edges):", "    raise count_error(node, found, edges)"]
        return [*lines, f"found = ({', '.join(parts)},)", *check, "return found"]

    def _slot_lines(self) -> list[str]:
        """`w_x`: whether a gradient is wanted for argument x."""
        if not self.has_list:
            return [f"w_{a.name} = edges[{i}] is not None" for i, a in enumerate(self.inputs)]
        lines = ["at = 0"]
        for a in self.inputs:
            if a.is_tensor_list:
                lines += [f"w_{a.name} = any([e is not None for e in edges[at : at + node.n_{a.name}]])", f"at += node.n_{a.name}"]
            else:
                lines += [f"w_{a.name} = edges[at] is not None", "at += 1"]
        return lines

    def _load_lines(self, name: str) -> list[str]:
        is_result = name in self.outputs or name == "result"
        is_list = self.op.schema.returns[0].type == "Tensor[]" if is_result else self.op.schema.argument(name).is_tensor_list
        if self.slow:
            lines = [f"{name} = unpack(node, node.s_{name})"]
        elif is_list:
            lines = [f"{name} = node.s_{name}", f"if {name} is not None:", f"    check_versions(node, {name}, node.v_{name})"]
        else:
            is_tensor = f"{name} is not None" + f" and {name}.__class__ not in NUMBERS" * (name in self.op.numbers)
            check = f"if {is_tensor} and {name}._storage.version != node.v_{name}:"
            lines = [f"{name} = node.s_{name}", check, f"    raise version_error(node, {name}, node.v_{name})"]
        if is_result and name not in self.op.nondifferentiable:
            index = 0 if len(self.outputs) == 1 else self.outputs.index(name)
            lines += ["if tls.grad_enabled:", f"    {name} = reattach({name}, node, {index})"]
        return lines

    def _formula_lines(self, i: int, formula: Formula) -> list[str]:
        arguments = []
        for name in formula.parameters:
            if name == "needs":
                arguments.append("(" + ", ".join(f"w_{t}" for t in formula.targets) + ",)")
            elif name in ("grad", "grads") or name in self.tensor_names or name in self.outputs or name == "result":
                arguments.append(name)
            else:
                arguments.append(f"node.f_{name}")
        call = f"formula{i}({', '.join(arguments)})"
        if len(formula.targets) == 1:
            target = formula.targets[0]
            empty = f"[None] * node.n_{target}" if self.op.schema.argument(target).is_tensor_list else "None"
            return [f"g_{target} = {call} if w_{target} else {empty}"]
        names = [f"g_{t}" for t in formula.targets]
        wanted = " or ".join(f"w_{t}" for t in formula.targets)
        return [f"if {wanted}:", f"    {', '.join(names)} = {call}", "else:", f"    {' = '.join(names)} = None"]


def _count_error(node: Node, found: tuple[Any, ...], edges: tuple[Any, ...]) -> RuntimeError:
    return RuntimeError(
        f"Function {node.name()} returned an invalid number of gradients - expected {len(edges)}, but got {len(found)}"
    )


def _fact(op: Op, name: str, fact: str) -> str:
    if name in op.schema.output_names and len(op.schema.returns) > 1:
        name = f"result[{op.schema.output_names.index(name)}]"
    elif name in op.numbers:
        return f"None if {name}.__class__ in NUMBERS else {_fact_of(name, fact)}"
    elif name in op.schema.argument_names and op.schema.argument(name).is_tensor_list:
        return f"[{_fact_of('t', fact)} for t in {name}]"
    elif name in op.schema.argument_names and op.schema.argument(name).type == "Tensor?":
        return f"None if {name} is None else {_fact_of(name, fact)}"
    return _fact_of(name, fact)


def _fact_of(name: str, fact: str) -> str:
    return {
        "_shape": f"{name}._array.shape",
        "_dtype": f"{name}.dtype",
        "_device": f"{name}.device",
        "_strides": f"{name}.stride()",
        "_geometry": f"({name}._array.shape, {name}.stride(), {name}.storage_offset())",
        "_byte_steps": f"{name}._array.strides",  # in bytes: costs 0.3 µs less than `stride()`
    }[fact]


def _node_class(plan: _Plan) -> type[Node]:
    op = plan.op
    kept = tuple(n for n in plan.needed if n in plan.tensor_names or n in plan.outputs or n == "result")
    facts = tuple(n for n in plan.needed if n not in kept)
    names: dict[str, Any] = {
        "released_error": released_error,
        "version_error": version_error,
        "check_versions": check_versions,
        "count_error": _count_error,
        "unpack": saved.unpack,
        "reattach": saved.reattach,
        "tls": state,
        "NUMBERS": NUMBERS,
    }
    names |= {f"formula{i}": f.function for i, f in enumerate(op.formulas)}
    attributes: dict[str, Any] = {
        "_run": compile_function("run", "node, grad, edges", plan.apply_lines(), names),
        "_multi": plan.multi,
        "_makes_views": op.schema.is_view,
        "_kept": kept,
        "_facts": facts,
        "_results": {n: plan.outputs.index(n) if len(plan.outputs) > 1 else 0 for n in kept if n not in plan.tensor_names},
        "_packed_class": staticmethod(lambda: _plan(op, True).node_class),
        "__module__": "torch.autograd.graph",
    }
    if op.nondifferentiable:
        attributes["_differentiable"] = tuple(i for i, n in enumerate(plan.outputs) if n not in op.nondifferentiable)
    if kept:
        clear = ["node._released = True", *(f"node.s_{n} = None" for n in kept)]
        attributes["_release"] = compile_function("release", "node", clear, {})
    attributes |= {f"s_{n}": None for n in kept} | {f"v_{n}": 0 for n in kept} | {f"f_{n}": None for n in facts}
    lists = {a.name for a in op.schema.arguments if a.type.startswith("int[")}
    attributes |= {saved.public_name(n): saved.saved_property(n, is_list=n in lists) for n in plan.needed}
    prefix, _, class_name = op.node_name.rpartition("::")
    if prefix:
        attributes["name"] = lambda node: op.node_name  # torch: nodes written by hand show their C++ namespace
    return type(class_name, (saved.OperatorNode,), attributes)


dispatcher.register_layer(keys.AUTOGRAD, autograd_layer)
