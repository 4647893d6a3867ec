"""Python functions that ask `__torch_function__` before they run: those of `nn.functional` and `torch`, and the methods of `Tensor`.

Operators ask in their own layers (`overrides`). A function that is written in Python has its code exchanged instead, so that the object that
programs hold, compare and pickle stays the same, and its own code moves to a function behind it:

    a method     has its own code until a subclass that overrides functions is defined, or a mode is entered: it costs nothing before
    a function   looks at the classes of its tensors (20-30 ns), because an object that is no tensor may override it at any time
"""

from __future__ import annotations

import functools
import inspect
import sys
import warnings
from collections.abc import Iterable, Mapping
from types import CodeType, FunctionType
from typing import Any, NamedTuple

from ._device import device
from ._dispatch import keys, lazy
from ._dispatch.codegen import compile_function, compile_lock, indent
from ._dispatch.tls import state
from ._dtype import dtype
from ._memory_format import memory_format
from ._tensor import Size, Tensor

__all__ = [
    "ask_in_functions",
    "ask_in_methods",
    "asking_function",
    "asks_itself",
    "count_modes",
    "members",
    "note_subclass",
    "overrides_functions",
]

# torch asks about none of these; the last line are parts of this package
_SILENT_FUNCTIONS = frozenset(
    "is_tensor is_storage typename broadcast_shapes is_vulkan_available is_distributed cudnn_is_acceptable".split()
)
_SILENT = frozenset(
    """
    __new__ __init__ __init_subclass__ __class__ __dir__ __hash__ __iter__ __getattribute__ __setattr__ __delattr__ __torch_function__
    __torch_dispatch__ as_subclass eig lstsq new new_tensor reinforce solve stride symeig unflatten _make_subclass
    _make_wrapper_subclass _typed_storage to_sparse_coo to_padded_tensor
    _require_extra
    """.split()
)
# operators of the language that are written in Python
_GIVING_WAY = frozenset(
    f"__{r}{name}__" for name in "pow mod sub truediv floordiv matmul lshift rshift".split() for r in ("", "r", "i")
)


class _Classes(set[type]):
    """Classes, as a constant of codes: a code is hashed with its constants."""

    __hash__ = object.__hash__  # type: ignore[assignment]


_plain = _Classes({Tensor, type(None)})  # classes of arguments that override nothing, as far as they were seen
_plain_members = frozenset({Tensor, int, float, bool, str, type(None)})
_lists = frozenset({list, tuple, Size})
_quick = frozenset({Tensor, Size, int, float, bool, complex, str, type(None), slice, type(...), dtype, device, memory_format})
_methods: list[_Point] = []
_functions: list[_Point] = []
_taken: set[int] = set()  # ids of the functions of both
_subclasses = False
_modes = 0


def overrides_functions(cls: type) -> bool:
    """Whether objects of this class override torch functions on this thread, at the moment."""
    if issubclass(cls, Tensor):
        return bool(cls._class_keys & keys.SUBCLASS) and not state.subclass_override_off
    return hasattr(cls, "__torch_function__")


def members(arguments: Iterable[Any]) -> Iterable[Any]:
    """The arguments, and those in lists."""
    return (x for a in arguments for x in (a if isinstance(a, list | tuple) else (a,)))


# --- one function ---------------------------------------------------------------------------------------------------


class _Point:
    """A function that asks: its own code in a function behind it, and the codes it has while methods are to ask and otherwise."""

    def __init__(self, public: Any, function: FunctionType) -> None:
        self.public = public  # what handlers are given
        self.function = function
        self.quiet = code = function.__code__
        self.body = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
        self.body.__kwdefaults__ = function.__kwdefaults__
        self.body.__dict__.update(function.__dict__)
        self.body.__qualname__, self.body.__annotations__ = function.__qualname__, function.__annotations__

    def ask(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What an override returns for a call, or what the function's own code does where nobody overrides it."""
        from .overrides import handle_torch_function, modes_are_on  # cycle with overrides

        found = [x for x in members((*args, *kwargs.values())) if overrides_functions(type(x))]
        if not found and not modes_are_on():
            return self.body(*args, **kwargs)
        try:
            return handle_torch_function(self.public, found, *args, **kwargs)
        except TypeError:
            if self.function.__name__ in _GIVING_WAY:
                return NotImplemented  # so that Python tries the other operand
            raise

    def ask_bound(self, values: tuple[Any, ...]) -> Any:
        """The same for a value of each parameter: those that have defaults go by keyword, as torch's functions hand them on."""
        # the values are in the order of the code's variables, where `*args` follows keywords
        _plain.update(c for c in map(type, values) if issubclass(c, Tensor) and not c._class_keys & keys.SUBCLASS)
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        given = dict(zip(self.body.__code__.co_varnames, values, strict=False))
        for p in self._parameters:
            value = given[p.name]
            if p.kind is p.VAR_POSITIONAL:
                args, kwargs = [*args, *kwargs.values(), *value], {}
            elif p.kind is p.VAR_KEYWORD:
                kwargs |= value
            elif p.default is p.empty and p.kind is not p.KEYWORD_ONLY:
                args.append(value)
            else:
                kwargs[p.name] = value
        return self.ask(tuple(args), kwargs)

    @functools.cached_property
    def _parameters(self) -> tuple[inspect.Parameter, ...]:
        return tuple(inspect.signature(self.body, follow_wrapped=False).parameters.values())  # 20 µs

    @functools.cached_property
    def _flat_body(self) -> FunctionType:
        """The body with a positional parameter for each of its own: the call that costs least."""
        code = self.body.__code__
        flat = code.replace(
            co_argcount=_shape(self.body).total, co_posonlyargcount=0, co_kwonlyargcount=0,
            co_flags=code.co_flags & ~(inspect.CO_VARARGS | inspect.CO_VARKEYWORDS),
        )  # fmt: skip
        return FunctionType(flat, self.body.__globals__, self.body.__name__, None, self.body.__closure__)

    @functools.cached_property
    def asking(self) -> CodeType:
        """The code that asks at each call."""
        is_alone = _shape(self.body) == _ALONE
        template = (_alone_code if is_alone else _always_code)(self.body.__code__.co_freevars)
        return self._filled(template, self.body.__code__.co_varnames[:1] if is_alone else ())

    def _filled(self, code: CodeType, names: tuple[str, ...]) -> CodeType:
        """A code for this function: its globals are the function's, so objects stand in it in place of the texts that name them."""
        objects = {
            "<ask>": self.ask, "<ask_bound>": self.ask_bound, "<body>": self.body, "<flat_body>": self._flat_body, "<state>": state, "<Tensor>": Tensor, "<plain>": _plain,
            "<strange>": _strange, "<quick>": _quick, "<map>": map, "<type>": type,
        }  # fmt: skip
        return code.replace(
            co_consts=tuple(objects.get(c, c) if isinstance(c, str) else c for c in code.co_consts),
            co_name=self.function.__name__,
            co_qualname=self.function.__qualname__,
            co_varnames=(*names, *code.co_varnames[len(names) :]),
        )

    def guard(self) -> None:
        """Have the function look at the classes of its tensors at each call."""
        shape = _shape(self.body)
        tensors, lists = _tested(self.body)
        if not tensors and not lists:
            return  # modes alone override it
        code = self.body.__code__
        self.quiet = self._filled(_guard_code(shape, tensors, lists, code.co_freevars), code.co_varnames[: shape.total])
        self.function.__code__ = self.quiet
        self.function.__wrapped__ = self.body  # type: ignore[attr-defined]  # for inspect


def asking_function(name: str, parameters: str, line: str, names: dict[str, Any], doc: str | None) -> FunctionType:
    """A function of one line that asks in its own code: without the call of a body, `relu` is as fast as it is without asking.

    Its first parameter is `input`. In tracebacks and stacks it stands where this was called.
    """
    caller = sys._getframe(2)

    def defined(text: str, **more: Any) -> FunctionType:
        function = compile_function(name, parameters, [text], {**names, **more}, module=names["__name__"])
        line_above = caller.f_lineno - 1  # the line of the function follows that of its name
        function.__code__ = function.__code__.replace(co_filename=caller.f_code.co_filename, co_firstlineno=line_above)
        return function

    body = defined(line)
    given = ", ".join(body.__code__.co_varnames[: _shape(body).total])
    asked = f"return ask_(({given},)) if input.__class__ is not tensor_ and input.__class__ not in plain_ else "
    function = defined(
        asked + line.removeprefix("return "), tensor_=Tensor, plain_=_plain, ask_=lambda values: point.ask_bound(values)
    )
    function.__doc__ = doc
    point = _Point(function, function)
    point.body = body
    _functions.append(point)
    _taken.add(id(function))
    return function


class _Shape(NamedTuple):
    """The kinds of a function's parameters."""

    positional_only: int
    positional: int
    keyword_only: int
    starred: bool
    keywords: bool

    @property
    def total(self) -> int:
        return self.positional + self.keyword_only + self.starred + self.keywords


_ALONE = _Shape(0, 1, 0, starred=False, keywords=False)


def _shape(function: FunctionType) -> _Shape:
    code = function.__code__
    starred, keywords = bool(code.co_flags & inspect.CO_VARARGS), bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return _Shape(code.co_posonlyargcount, code.co_argcount, code.co_kwonlyargcount, starred, keywords)


def _compiled(parameters: str, lines: list[str], free: tuple[str, ...]) -> CodeType:
    """The code of a function with these free variables, as that of the function whose place it takes has.

    It does not use them, and has to be made as if it did: a frame whose code lists variables that it never got ends the process when a debugger
    asks for its variables.
    """
    used = [f"if False: {', '.join(free)}"] if free else []
    inner = [f"def asking({parameters}):", *indent([*used, *lines])]
    variables = [f"{name} = None" for name in free]
    with warnings.catch_warnings(action="ignore", category=SyntaxWarning):
        # of texts that are called and compared: objects take their place
        outer = compile_function("enclosing", "", [*variables, *inner, "return asking"], {}, title="override")
    code: CodeType = outer().__code__
    return code


@functools.cache
def _always_code(free: tuple[str, ...]) -> CodeType:
    """Of the others: 0.4 µs on plain tensors and numbers, where a search for overrides takes 3.6."""
    plain = "'<quick>'.issuperset('<map>'('<type>', a0)) and '<quick>'.issuperset('<map>'('<type>', a1.values()))"
    lines = [f"if '<state>'.function_modes or not ({plain}):", "    return '<ask>'(a0, a1)", "return '<body>'(*a0, **a1)"]
    return _compiled("*a0, **a1", lines, free)


@functools.cache
def _alone_code(free: tuple[str, ...]) -> CodeType:
    """Of properties and methods without arguments, which programs call most: 40 ns on plain tensors."""
    lines = [
        "if a0.__class__ is not '<Tensor>' or '<state>'.function_modes:",
        "    return '<ask>'((a0,), {})",
        "return '<body>'(a0)",
    ]
    return _compiled("a0", lines, free)


@functools.cache
def _guard_code(shape: _Shape, tensors: tuple[int, ...], lists: tuple[int, ...], free: tuple[str, ...]) -> CodeType:
    """The code of functions with such parameters, of which these are tensors and lists. Functions with the same ones share it."""
    names = [f"a{i}" for i in range(shape.total)]
    stars = ["*"] * (shape.starred or shape.keyword_only > 0)
    parts = [*names[: shape.positional], *stars, *names[shape.positional :]]
    if shape.starred:  # in a code, the name of `*args` follows those of keywords
        parts.remove(starred := names[shape.positional + shape.keyword_only])
        parts[parts.index("*")] = "*" + starred
    if shape.keywords:
        parts[parts.index(names[-1])] = "**" + names[-1]
    if shape.positional_only:
        parts.insert(shape.positional_only, "/")
    first = [f"{names[i]}.__class__ is not '<Tensor>' and {names[i]}.__class__ not in '<plain>'" for i in tensors[:1]]
    others = [f"{names[i]}.__class__ not in '<plain>'" for i in tensors[1:]]
    strange = [f"'<strange>'({names[i]})" for i in lists]
    lines = [
        f"if {' or '.join([*first, *others, *strange])}:",
        f"    return '<ask_bound>'(({', '.join(names)},))",
        f"return '<flat_body>'({', '.join(names)})",
    ]
    return _compiled(", ".join(parts), lines, free)


def _tested(function: FunctionType) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Which parameters are tensors, and which are lists of tensors or sizes, by their annotations."""
    tensors, lists = [], []
    shape = _shape(function)
    names = function.__code__.co_varnames[: shape.total]
    starred = shape.positional + shape.keyword_only if shape.starred else -1
    for i, name in enumerate(names):
        kind = str(function.__annotations__.get(name, ""))
        if name == "out" or (shape.keywords and i == shape.total - 1):
            continue
        if i == starred or kind.startswith(("Sequence[", "list[", "tuple[")):
            lists.append(i)
        elif "Tensor" in kind:
            tensors.append(i)
    return tuple(tensors), tuple(lists) if tensors or starred >= 0 else ()


# --- all of them ----------------------------------------------------------------------------------------------------


def _strange(given: Any) -> bool:
    """Whether a list has something in it that overrides functions, or another such list."""
    if given.__class__ not in _lists or _plain_members.issuperset(map(type, given)):
        return False
    return any(_strange(x) if x.__class__ in _lists else overrides_functions(type(x)) for x in given)


def note_subclass() -> None:
    """Have methods ask from now on: a subclass of `Tensor` overrides functions."""
    global _subclasses
    with compile_lock:
        if _methods and not _subclasses:  # before, the package defines its own, which do without
            _subclasses = True
            _exchange(_methods, asking=True)


def count_modes(change: int) -> None:
    """Have functions and methods ask while modes are entered, on any thread."""
    global _modes
    with compile_lock:
        before, _modes = _modes, _modes + change
        if (before > 0) != (_modes > 0):
            _exchange(_functions, asking=_modes > 0)
            _exchange(_methods, asking=_modes > 0 or _subclasses)


def _exchange(points: Iterable[_Point], *, asking: bool) -> None:
    for point in points:
        point.function.__code__ = point.asking if asking else point.quiet


def ask_in_methods() -> None:
    """Have the Python methods and properties of `Tensor` ask; those that are operators do so already."""
    for name, value in list(vars(Tensor).items()):
        if name in _SILENT:
            continue
        if isinstance(value, property):
            for public, function in ((value.__get__, value.fget), (value.__set__, value.fset)):
                if isinstance(function, FunctionType) and _is_new(function):
                    _methods.append(_Point(public, function))
        elif isinstance(value, FunctionType) and _is_new(value):
            if not hasattr(Tensor, value.__name__):
                value.__name__ = name
            _methods.append(_Point(value, value))


def ask_in_functions(functions: Mapping[str, Any]) -> None:
    """Have Python functions, given by their public names, ask where one of their tensors is none of the plain ones."""
    for name, function in functions.items():
        if isinstance(function, FunctionType) and name not in _SILENT_FUNCTIONS and _is_new(function):
            if function.__name__ not in functions:
                function.__name__ = name  # as handlers see it
            _functions.append(_Point(function, function))
            _functions[-1].guard()


def asks_itself(function: object) -> None:
    """Leave a function as it is: it asks in code of its own."""
    _taken.add(id(function))


def _is_new(function: FunctionType) -> bool:
    """Whether a function is written in Python, rather than made of an operator's schema, and does not ask yet."""
    new = "op" not in vars(function) and function.__module__ not in ("torch", lazy.__name__) and id(function) not in _taken
    _taken.add(id(function))
    return new
