"""The Autograd key: extends an operator's body so that its result gets a `Node` with what the formulas asked for.

What a formula saves follows from its parameter names: an argument, a result, or a fact (`self_shape`, `other_dtype`). Of the
tensors, only those that a wanted gradient needs are kept, each with the version of its storage.
"""

from __future__ import annotations

from typing import Any

from .._dispatch import dispatcher, keys
from .._dispatch.codegen import Body, compile_function, indent
from .._dispatch.entry import NUMBERS
from .._dispatch.op import FACTS, Formula, Op
from .._dispatch.tls import state
from .._tensor import shallow_copy
from . import inplace, saved
from .node import Node, Output, edge_of, next_sequence

__all__ = ["autograd_layer"]

A = keys.AUTOGRAD


def autograd_layer(op: Op, full: int, body: Body) -> Body:
    """Record a node when grad mode is on; the body below runs either way."""
    if op.composite is not None and not op.formulas and keys.AUTOGRAD not in op.kernels:
        return body
    if keys.AUTOGRAD in op.kernels:
        call = dispatcher.call_body(op, op.kernels[keys.AUTOGRAD], "autograd_kernel")
        lines = ["if tls.grad_enabled:", *indent(call.lines), "else:", *indent(body.lines)]
        return Body(lines, {**body.names, **call.names, "tls": state})
    if not op.formulas:
        return _without_formula(op, body)
    plan = _Plan(op, slow=bool(full & keys.SAVED_HOOKS))
    names = {
        **body.names,
        "tls": state,
        "NUMBERS": NUMBERS,
        "Node": plan.node_class,
        "Output": Output,
        "edge_of": edge_of,
        "next_sequence": next_sequence,
        "shallow_copy": shallow_copy,
        "check_inplace": inplace.check_inplace,
        "rebase_history": inplace.rebase_history,
        "original": inplace.original_of,
        "pack": saved.pack,
        "note_creation": saved.note_creation,
    }
    below = body.lines
    if op.composite is not None or full & keys.BACKENDS in op.kernels:
        # kernels written over tensors call operators themselves: those calls must not be recorded
        below = ["tls.grad_enabled = False", "try:", *indent(body.lines), "finally:", "    tls.grad_enabled = True"]
    if op.schema.is_inplace:
        lines = ["if tls.grad_enabled:", *indent(plan.inplace_lines(below)), "else:", *indent(body.lines)]
    elif below is body.lines:
        lines = [*body.lines, "if tls.grad_enabled:", *indent(plan.node_lines())]
    else:
        lines = ["if tls.grad_enabled:", *indent([*below, *plan.node_lines()]), "else:", *indent(body.lines)]
    return Body(lines, names)


def _without_formula(op: Op, body: Body) -> Body:
    """An operator that nobody can differentiate: results of floating type say so in backward."""
    if op.schema.is_view or not any(r.type.startswith("Tensor") for r in op.schema.returns):
        return body
    if "nondifferentiable" in op.tags:
        return body
    names = {**body.names, "tls": state, "mark": saved.mark_not_implemented}
    inputs = ", ".join(a.name for a in op.schema.tensor_arguments)
    return Body([*body.lines, "if tls.grad_enabled:", f"    mark({op.name!r}, result, ({inputs},))"], names)


class _Plan:
    """What one operator's node keeps, and the source that fills and reads it."""

    def __init__(self, op: Op, *, slow: bool) -> None:
        self.op = op
        self.slow = slow
        schema = op.schema
        targets = {t for f in op.formulas for t in f.targets}
        self.inputs = [a for a in schema.arguments if a.name in targets]
        self.outputs = schema.output_names
        self.tensor_names = {a.name for a in schema.tensor_arguments}
        self.needed: dict[str, list[Formula]] = {}
        for formula in op.formulas:
            for name in formula.parameters:
                if name not in ("grad", "grads", "needs"):
                    self.needed.setdefault(name, []).append(formula)
        self.has_list = any(a.is_tensor_list for a in self.inputs)
        self.node_class = _node_class(self)

    # --- the forward side -----------------------------------------------------------------------------------------

    def _edges(self) -> str:
        parts = []
        for a in self.inputs:
            if a.is_tensor_list:
                parts.append(f"*[edge_of(t) for t in {a.name}]")
            else:
                n = a.name
                edge = f"(edge_of({n}) if {n}._base is not None and {n}._base._extra is not None else {n} if {n}._node is None else {n}._node)"
                absent = f"{n} is None or " if a.type == "Tensor?" else f"{n}.__class__ in NUMBERS or " if n in self.op.numbers else ""
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
            if is_result != results:
                continue
            save = self._save_one(name)
            condition = self._wanted(name) if name in self.tensor_names or name in self.outputs else ""
            lines += [f"if {condition}:", *indent(save)] if condition else save
        return lines

    def _save_one(self, name: str) -> list[str]:
        for fact in FACTS:
            if name.endswith(fact) and name not in self.op.schema.argument_names:
                return [f"node.{name} = {_fact(self.op, name[: -len(fact)], fact)}"]
        if name in self.outputs or name == "result":
            return self._save_result(name)
        if name not in self.tensor_names:
            return [f"node.{name} = {name}"]
        value = "original(self)" if name == "self" and self.op.schema.is_inplace else name
        if self.slow:
            return [f"node.s_{name} = pack({value})"]
        argument = self.op.schema.argument(name)
        if argument.is_tensor_list:
            return [f"node.s_{name} = list({name})", f"node.v_{name} = [None if t is None else t._storage.version for t in {name}]"]
        store = [f"s = node.s_{name} = {value}"]
        version = f"node.v_{name} = s._storage.version"
        if name in self.op.numbers:
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
            value = f"[shallow_copy(t) for t in {value}]" if self.op.schema.returns[0].type == "Tensor[]" else f"shallow_copy({value})"
        if self.slow:
            return [f"node.s_{name} = pack({value})"]
        if self.op.schema.returns[0].type == "Tensor[]":
            return [f"s = node.s_{name} = {value}", f"node.v_{name} = [t._storage.version for t in s]"]
        return [f"s = node.s_{name} = {value}", f"node.v_{name} = s._storage.version"]

    def _start(self) -> list[str]:
        lines = ["node = Node()", "node.seq = next_sequence()", f"edges = node.edges = {self._edges()}"]
        if self.slow:
            lines.append("note_creation(node)")
        lines += [f"node.n_{a.name} = len({a.name})" for a in self.inputs if a.is_tensor_list]
        return lines

    def node_lines(self) -> list[str]:
        lines = [*self._start(), *self._save_lines(results=False), *self._save_lines(results=True)]
        returns = self.op.schema.returns
        if len(returns) == 1 and returns[0].type == "Tensor":
            lines += ["node.shape = result._array.shape", "node.dtype = result.dtype", f"result._keys |= {A}", "result._node = node"]
            body = lines
            if returns[0].alias and not self.slow:
                return body
            if self._may_be_integral():
                return ["if result.dtype.inexact:", *indent(body)]
            return body
        outputs = [i for i, name in enumerate(self.outputs) if name not in self.op.nondifferentiable]
        lines += ["node.outputs_meta = [None if t is None else (t._array.shape, t.dtype) for t in result]", "node.outputs = len(result)"]
        loop = "enumerate(result)" if len(outputs) == len(self.outputs) else f"[(i, result[i]) for i in {outputs}]"
        return [*lines, f"for i, t in {loop}:", "    if t is not None and t.dtype.inexact:", f"        t._keys |= {A}", "        t._node = Output(node, i)"]

    def _may_be_integral(self) -> bool:
        return self.op.schema.name in ("to", "_to_copy", "type_as", "copy", "where", "clone")

    def inplace_lines(self, below: list[str]) -> list[str]:
        return [
            "check_inplace(self)",
            *self._start(),
            *self._save_lines(results=False),
            *below,
            *self._save_lines(results=True),
            "node.shape = result._array.shape",
            "node.dtype = result.dtype",
            "rebase_history(result, node)",
        ]

    # --- the backward side ----------------------------------------------------------------------------------------

    def apply_lines(self) -> list[str]:
        lines = []
        saved_tensors = [n for n in self.needed if n in self.tensor_names or n in self.outputs or n == "result"]
        if saved_tensors:
            lines += ["if node.released:", "    raise released_error()"]
        if any("grad" in f.parameters for f in self.op.formulas):
            lines += ["grad = grads[0]"]
            if all("grads" not in f.parameters for f in self.op.formulas):
                lines += ["if grad is None:", "    return (None,) * len(node.edges)"]
        lines.append("edges = node.edges")
        for name in saved_tensors:
            lines += self._load_lines(name)
        lines += self._slot_lines()
        for i, formula in enumerate(self.op.formulas):
            lines += self._formula_lines(i, formula)
        parts = ["*" + f"g_{a.name}" if a.is_tensor_list else f"g_{a.name}" for a in self.inputs]
        lines.append(f"return ({', '.join(parts)},)")
        return lines

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
        if self.slow:
            lines = [f"{name} = unpack(node, node.s_{name})"]
        else:
            lines = [
                f"{name} = node.s_{name}",
                f"if {name}.__class__ is list:",
                f"    check_versions(node, {name}, node.v_{name})",
                f"elif {name} is not None and {name}.__class__ not in NUMBERS and {name}._storage.version != node.v_{name}:",
                f"    raise version_error(node, {name}, node.v_{name})",
            ]
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
                arguments.append(f"node.{name}")
        call = f"formula{i}({', '.join(arguments)})"
        if len(formula.targets) == 1:
            target = formula.targets[0]
            empty = f"[None] * node.n_{target}" if self.op.schema.argument(target).is_tensor_list else "None"
            return [f"g_{target} = {call} if w_{target} else {empty}"]
        names = [f"g_{t}" for t in formula.targets]
        wanted = " or ".join(f"w_{t}" for t in formula.targets)
        return [f"if {wanted}:", f"    {', '.join(names)} = {call}", "else:", f"    {' = '.join(names)} = None"]


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
        "_byte_steps": f"{name}._array.strides",  # in bytes: costs 0.3 µs less than `stride()`
    }[fact]


def _node_class(plan: _Plan) -> type[Node]:
    op = plan.op
    kept = tuple(n for n in plan.needed if n in plan.tensor_names or n in plan.outputs or n == "result")
    names: dict[str, Any] = {
        "released_error": saved.released_error,
        "version_error": saved.version_error,
        "check_versions": saved.check_versions,
        "unpack": saved.unpack,
        "reattach": saved.reattach,
        "tls": state,
        "NUMBERS": NUMBERS,
    }
    names |= {f"formula{i}": f.function for i, f in enumerate(op.formulas)}
    apply = compile_function("apply", "node, grads", plan.apply_lines(), names)
    attributes: dict[str, Any] = {
        "apply": apply,
        "saved": saved.read_saved,
        "saved_names": kept,
        "__module__": "torch.autograd.graph",
        "facts": tuple(n for n in plan.needed if n not in kept),
        "outputs": len(plan.outputs),
    }
    attributes |= {f"s_{n}": None for n in kept} | {f"v_{n}": 0 for n in kept}
    attributes |= {n: None for n in attributes["facts"]}
    return type(op.node_name, (Node,), attributes)


dispatcher.register_layer(keys.AUTOGRAD, autograd_layer)

