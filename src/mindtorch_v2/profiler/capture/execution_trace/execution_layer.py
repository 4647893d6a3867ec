"""The hot half of execution traces: what runs inside every operator while one is written.

The text of a node is mostly the same for all calls with the same shapes and numbers. So there is a template for each, with holes for
what differs: the numbers of the node, of the one around it, of tensors and storages. Finding and filling it takes a quarter of the
time of making the text anew.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...._dispatch import dispatcher, keys
from ...._dispatch.codegen import Body, indent
from ...._dispatch.op import Op
from ...._dispatch.schema import Argument
from ...._storage import identify, next_identity
from ...model.session import FUNCTION
from ...writing.json_text import json_text
from ..operators.call_inputs import CallInputs
from . import execution_extras, execution_values
from .execution_nodes import FIRST_SEQUENCE, FUNCTION_ID, NOTHING, WANTED, NodeFile, Open, Track, next_function_id, node_text
from .execution_values import MOST_TEMPLATES, Described

__all__ = ["Current", "current"]


class Current:
    """The file that operators write to."""

    __slots__ = ("extras", "file")
    file: NodeFile
    extras: execution_extras.Extras | None


current = Current()


def execution_layer(op: Op, full: int, body: Body) -> Body:
    """Write a node for each call of an operator."""
    if "transparent" in op.tags:
        return body
    calls = Calls(op, full, result_is_new=body.result_is_new)
    names: dict[str, Any] = {
        "current_": current,
        "next_function_id_": next_function_id,
        "next_identity_": next_identity,
        "identify_": identify,
        "offset_": execution_values.offset_of,
        "templates_": calls.templates,
        "template_": calls.template,
        "value_": calls.value,
        "end_": calls.end,
        "fail_": calls.fail,
        **calls.names,
    }
    arguments = ", ".join(op.schema.argument_names) + ("," if op.schema.arguments else "")
    lines = [
        "rf_ = next_function_id_()",
        f"track_ = current_.file.{'track()' if full & keys.RECORD_TASKS else 'here.track'}",
        f"entry_ = [next_identity_(), {WANTED}, {op.qualified_name!r}, {FUNCTION}, rf_]",
        "try:",
        *indent(calls.identity_lines()),
        *indent(calls.geometry_lines),
        f"    key_ = {calls.key}",
        "    try:",
        "        text_ = templates_[key_]",
        "    except (KeyError, TypeError):",  # new, or not hashable
        f"        text_ = template_(key_, ({arguments}))",
        f"    holes_ = (entry_[0], track_[-1][0], {calls.holes})",
        f"    extras_ = '' if current_.extras is None else current_.extras.of({op.qualified_name!r}, entry_[0], ({arguments}))",
        "except Exception:",  # no reason to keep the operator from running
        "    text_, holes_, extras_ = None, (entry_[0], track_[-1][0]), ''",
        "track_.append(entry_)",
        *(["seq_ = -1"] if body.makes_node else []),
        "try:",
        *indent(body.lines),
        "except BaseException:",
        "    fail_(track_, entry_, text_, holes_, extras_)",
        "    raise",
    ]
    if body.makes_node:
        lines += ["if seq_ >= 0:", "    node._track = track_"]
    lines.append(f"end_(track_, entry_, text_, holes_, extras_, {'seq_' if body.makes_node else -1}, result)")
    return body.edited(lines, names)


class Calls:
    """The calls of one operator with one set of keys."""

    def __init__(self, op: Op, full: int, *, result_is_new: bool) -> None:
        self.op = op
        self.templates: dict[Any, str] = {}
        numbers = op.numbers if full & keys.NUMBER else ()
        # the device is the same for all tensors, and so not among the facts that calls are told apart by
        self._one_device = full & keys.BACKENDS in (0, keys.CPU, keys.META) and not full & keys.SPARSE_LAYOUTS
        self._inline = [a for a in op.schema.arguments if a.type == "Tensor" and a.name not in numbers] if self._one_device else []
        self._by_call = [a for a in op.schema.tensor_arguments if a not in self._inline]
        parts = []
        for a in op.schema.arguments:
            if a in self._inline:
                n = self._inline.index(a)
                parts += [f"i{n}_", f"j{n}_", f"o{n}_"]
            elif a in self._by_call:
                parts.append(f"value_({self._by_call.index(a)}, {a.name})")
        self.holes = ", ".join(parts)
        # an unhashable key is a call like no other
        inputs = CallInputs(op, numbers=numbers)
        self.geometry_lines = inputs.lines if self._one_device else []
        self.key = inputs.expression if self._one_device else "[]"
        self.names = inputs.names
        self._head = json_text(op.qualified_name)
        self._outputs: Callable[[Any], str] = self._any_outputs
        if self._one_device and [r.type for r in op.schema.returns] == ["Tensor"]:
            self._outputs = execution_values.object_of_new_tensor if result_is_new else execution_values.object_of_tensor

    def identity_lines(self) -> list[str]:
        """Numbers of tensors and storages and offsets, as they are before the call."""
        lines = []
        for n, a in enumerate(self._inline):
            lines += [
                "try:",
                f"    i{n}_ = {a.name}._identity",
                "except AttributeError:",
                f"    i{n}_ = identify_({a.name})",
                f"storage_ = {a.name}._storage",
                "try:",
                f"    j{n}_ = storage_._identity",
                "except AttributeError:",
                f"    j{n}_ = identify_(storage_)",
                f"o{n}_ = 0 if {a.name}._array is storage_.array else offset_({a.name})",
            ]
        return [*lines, "storage_ = None"] if lines else []

    def template(self, key: Any, arguments: tuple[Any, ...]) -> str:
        """The text of a call, with holes."""
        described, with_generator = [], False
        for a, value in zip(self.op.schema.arguments, arguments, strict=True):
            if execution_values.takes_generator(self.op, a):
                if value is None:
                    continue
                with_generator = True
            described.append(self._with_hole(a, value))
        text = self._text(execution_values.object_of(described), with_generator=with_generator)
        try:
            if len(self.templates) >= MOST_TEMPLATES:
                self.templates.clear()
            self.templates[key] = text
        except TypeError:
            pass
        return text

    def _with_hole(self, a: Argument, value: Any) -> Described:
        if a in self._inline:
            facts = execution_values.facts(value._array.shape, value.dtype, value.device)
            return execution_values.described(value)._replace(value=f"[%d,%d,%d{facts}")
        found = execution_values.argument(a, value, undefined_number=current.file.undefined)
        shown = "%s" if a in self._by_call else found.value.replace("%", "%%")
        return Described(shown, found.shape, found.type.replace("%", "%%"), found.strides)

    def _text(self, inputs: str, *, with_generator: bool = False) -> str:
        schema = json_text(execution_values.schema_text(self.op, with_generator=with_generator)).replace("%", "%%")
        return _holed(self._head.replace("%", "%%"), inputs=inputs, schema=schema)

    def value(self, number: int, value: Any) -> str:
        """The value of a tensor argument that may be absent, a number, or a list."""
        return execution_values.argument(self._by_call[number], value, undefined_number=current.file.undefined).value

    def end(
        self, track: Track, entry: Open, text: str | None, holes: tuple[Any, ...], extras: str, sequence: int, result: Any
    ) -> None:
        """Write the node of a call that has ended."""
        if track[-1] is entry:
            track.pop()
        elif not track.leave(entry):
            return
        if sequence < 0:
            sequence = entry[FIRST_SEQUENCE]
        if sequence >= 0:
            around = track[-1]
            if around[FIRST_SEQUENCE] == WANTED:
                around[FIRST_SEQUENCE] = sequence
        try:
            outputs = self._outputs(result)
        except Exception:  # no reason to fail an operator that has run
            outputs = NOTHING
        if text is None:
            text = self._text(NOTHING)
        track.file.write(text % (*holes, outputs, entry[FUNCTION_ID], sequence, track.tid, extras))

    def fail(self, track: Track, entry: Open, text: str | None, holes: tuple[Any, ...], extras: str) -> None:
        """Write the node of a call that raised: it has no results."""
        if track.leave(entry):
            text = text or self._text(NOTHING)
            track.file.write(text % (*holes, NOTHING, entry[FUNCTION_ID], max(entry[FIRST_SEQUENCE], -1), track.tid, extras))

    def _any_outputs(self, result: Any) -> str:
        returns = self.op.schema.returns
        results = [] if not returns else [result] if len(returns) == 1 else result
        return execution_values.object_of([self._result(r) for r in results])

    def _result(self, value: Any) -> Described:
        return execution_values.undefined(current.file.undefined) if value is None else execution_values.described(value)


def _holed(name: str, *, inputs: str, schema: str) -> str:
    """A node's text in which everything that differs from call to call is a hole."""
    holes = {"outputs": "%s", "function_id": "%d", "sequence": "%d", "thread": "%d", "ranges": "%s"}
    return node_text("%d", name, "%d", inputs=inputs, scope=FUNCTION, schema=schema, **holes)


dispatcher.register_layer(keys.EXECUTION_TRACE, execution_layer)
