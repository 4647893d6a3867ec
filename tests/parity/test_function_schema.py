"""Schemas as programs read them: every operator's, and the types of their arguments, as torch shows them."""

import pytest
import torch

import mindtorch_v2 as mt
from mindtorch_v2._dispatch import registry

pytestmark = pytest.mark.parity

PLAIN = "Any Bool Complex DeviceObj Float Int None Number PyObject StreamObj String SymBool SymInt Tensor".split()
MADE = """
lib.ListType(I)
lib.ListType(lib.OptionalType(T))
lib.ListType.ofInts()
lib.ListType.ofTensors()
lib.OptionalType(I)
lib.OptionalType(lib.OptionalType(I))
lib.OptionalType.ofTensor()
lib.DictType(S, I)
lib.TupleType([I, F])
lib.TupleType([])
lib.FutureType(I)
lib.AwaitType(I)
lib.RRefType(I)
lib.UnionType([I, S])
lib.UnionType([S, T])
lib.UnionType([S, N, I])
lib.UnionType([lib.ListType(I), I])
lib.UnionType([lib.OptionalType(I), S])
""".strip().splitlines()
TEXTS = [
    "foo(Tensor x) -> ()",
    "foo(Any x, t[] y) -> t",
    "foo(int a, *, int b) -> (int, int)",
    "aten::foo.bar(Tensor(a!) self, int[2]? b=None, *, ScalarType? dtype=None, float d=1.5, str e='x', bool f=True, SymInt[] s, Device? dev=None, Generator? g=None, Dict(str, int) dd, Scalar q=1, Stream st, int[3] ii=1, Tensor(c!) out) -> (Tensor(a!) r, Tensor[])",
    "foo((int, float) z, SymBool b, bool[2] m) -> Tensor",
    "bad(",
    "foo(Tensor x) -> Tensor junk more",
    "foo(Nothing x) -> Tensor",
]


# Ours take a generator where torch has an overload for that, and say None for the dtype that follows from it.
OTHERWISE = set(
    "rand randn randint randint.low randperm randint_like randint_like.low_dtype rand_like randn_like tril_indices triu_indices slice_backward".split()
)


def _names(lib):
    short = dict(zip("IFTSCN", ("Int", "Float", "Tensor", "String", "Complex", "None"), strict=True))
    return {"lib": lib, **{letter: getattr(lib, f"{name}Type").get() for letter, name in short.items()}}


def _type_facts(t):
    return str(t), repr(t), t.str(), t.kind(), t.annotation_str, [str(p) for p in t.containedTypes()], type(t).__name__


def _argument_facts(a):
    alias = a.alias_info and (a.alias_info.is_write, a.alias_info.before_set, a.alias_info.after_set)
    default = a.has_default_value(), repr(a.default_value)
    return a.name, _type_facts(a.type), _type_facts(a.real_type), a.N, a.kwarg_only, default, a.is_out, a.is_write, alias


def _schema_facts(s):
    arguments, returns = [_argument_facts(a) for a in s.arguments], [_argument_facts(a) for a in s.returns]
    return s.name, s.overload_name, str(s), s.is_mutable, arguments, returns


@pytest.mark.parametrize("name", PLAIN)
def test_plain_types(name):
    ours, theirs = (getattr(lib, f"{name}Type").get() for lib in (mt, torch))
    assert _type_facts(ours) == _type_facts(theirs)
    assert ours is getattr(mt, f"{name}Type").get()
    with pytest.raises(TypeError, match="No constructor defined"):
        getattr(mt, f"{name}Type")()


@pytest.mark.parametrize("call", MADE)
def test_types_made_of_others(call):
    assert _type_facts(eval(call, _names(mt))) == _type_facts(eval(call, _names(torch)))


def test_subtypes():
    calls = [*MADE, *(f"lib.{name}Type.get()" for name in PLAIN)]
    ours, theirs = ([eval(call, _names(lib)) for call in calls] for lib in (mt, torch))
    found = [(a, b) for a in range(len(calls)) for b in range(len(calls)) if ours[a].isSubtypeOf(ours[b])]
    expected = [(a, b) for a in range(len(calls)) for b in range(len(calls)) if theirs[a].isSubtypeOf(theirs[b])]
    different = {(calls[a], calls[b], (a, b) in found) for a, b in set(found) ^ set(expected)}
    assert not different


@pytest.mark.parametrize("text", TEXTS)
def test_parsed(text):
    outcomes = []
    for lib in (mt, torch):
        try:
            outcomes.append(_schema_facts(lib.parse_schema(text)))
        except RuntimeError as error:
            outcomes.append(type(error).__name__)
    assert outcomes[0] == outcomes[1]


def test_every_operator():
    different = {}
    for op in registry.all_ops():
        label = op.name if op.overload_name == "default" else f"{op.name}.{op.overload_name}"
        if op.schema.namespace != "aten" or label in OTHERWISE:
            continue
        packet = getattr(torch.ops.aten, op.name, None)
        theirs = getattr(packet, op.overload_name, None)
        if theirs is None:
            continue
        ours = _schema_facts(getattr(getattr(mt.ops.aten, op.name), op.overload_name)._schema)
        if ours != _schema_facts(theirs._schema):
            different[str(theirs._schema)] = [(a, b) for a, b in zip(ours, _schema_facts(theirs._schema), strict=True) if a != b]
    assert not different, f"{len(different)}: {list(different.items())[:4]}"
