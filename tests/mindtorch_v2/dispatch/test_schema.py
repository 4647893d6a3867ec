"""Schemas are read as ATen writes them."""

import pytest

from mindtorch_v2._dispatch.schema import parse


def test_names_types_and_defaults():
    schema = parse("addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor")
    assert schema.qualified_name == "aten::addmm"
    assert schema.argument_names == ("self", "mat1", "mat2", "beta", "alpha")
    assert [a.keyword_only for a in schema.arguments] == [False, False, False, True, True]
    assert schema.argument("beta").default == 1
    assert not schema.argument("mat1").has_default
    assert schema.output_names == ("result",)


def test_overload_and_namespace():
    schema = parse("mylib::scale.by(Tensor x, float factor=2.5) -> Tensor")
    assert (schema.namespace, schema.name, schema.overload) == ("mylib", "scale", "by")
    assert schema.argument("factor").default == 2.5


def test_aliases_tell_views_from_writes():
    assert parse("t(Tensor(a) self) -> Tensor(a)").is_view
    assert not parse("t(Tensor(a) self) -> Tensor(a)").is_inplace
    assert parse("add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)").is_inplace


def test_lists_optionals_and_several_results():
    schema = parse(
        "max_pool(Tensor self, int[2] size, int[2] stride=[], bool ceil=False, Tensor? w=None) -> (Tensor values, Tensor indices)"
    )
    assert schema.argument("stride").default == ()
    assert schema.argument("size").type == "int[2]"
    assert schema.argument("w").type == "Tensor?"
    assert schema.output_names == ("values", "indices")


def test_symbolic_ints_are_ints():
    assert parse("view(Tensor(a) self, SymInt[] size) -> Tensor(a)").argument("size").type == "int[]"


@pytest.mark.parametrize("text", ["no arrow(Tensor x)", "f(Tensor) -> Tensor", ""])
def test_what_is_no_schema_is_refused_with_its_text(text):
    with pytest.raises(ValueError, match="schema"):
        parse(text)
