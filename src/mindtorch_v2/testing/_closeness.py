"""`assert_close`: numbers, tensors, and sequences and mappings of them, compared with tolerances that fit their dtype."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from .. import _dtype
from .._creation import as_tensor
from .._tensor import Tensor
from ._mismatch import ErrorMeta, item_text, make_scalar_mismatch_msg, make_tensor_mismatch_msg
from ._pairs import BooleanPair, NonePair, NumberPair, ObjectPair, Pair, TensorLikePair, UnsupportedInputs
from ._tolerances import default_tolerances, get_tolerances

__all__ = [
    "BooleanPair",
    "ErrorMeta",
    "NonePair",
    "NumberPair",
    "ObjectPair",
    "Pair",
    "TensorLikePair",
    "UnsupportedInputs",
    "assert_allclose",
    "assert_close",
    "default_tolerances",
    "get_tolerances",
    "make_scalar_mismatch_msg",
    "make_tensor_mismatch_msg",
    "not_close_error_metas",
    "originate_pairs",
]

_ALLCLOSE = {_dtype.float16: (1e-3, 1e-3), _dtype.float32: (1e-4, 1e-5), _dtype.float64: (1e-5, 1e-8)}


def _unwrap_dtensor_for_comparison(actual: Any, expected: Any) -> tuple[Any, Any]:
    """The values: tensors are in one process."""
    return actual, expected


def originate_pairs(
    actual: Any,
    expected: Any,
    *,
    pair_types: Sequence[type[Pair]],
    sequence_types: tuple[type, ...] = (Sequence,),
    mapping_types: tuple[type, ...] = (Mapping,),
    id: tuple[Any, ...] = (),
    **options: Any,
) -> list[Pair]:
    """The pairs of values in two structures of sequences and mappings, each of the first type that takes them."""
    if _both(actual, expected, sequence_types) and not isinstance(actual, str) and not isinstance(expected, str):
        if len(actual) != len(expected):
            text = f"The length of the sequences mismatch: {len(actual)} != {len(expected)}"
            raise ErrorMeta(AssertionError, text, id=id)
        keys: Iterable[Any] = range(len(actual))
    elif _both(actual, expected, mapping_types):
        keys = _common_keys(actual, expected, id)
    else:
        return [_originate(actual, expected, pair_types, id, options)]
    inner = {"pair_types": pair_types, "sequence_types": sequence_types, "mapping_types": mapping_types, **options}
    return [pair for key in keys for pair in originate_pairs(actual[key], expected[key], id=(*id, key), **inner)]


def _both(actual: object, expected: object, types: tuple[type, ...]) -> bool:
    return isinstance(actual, types) and isinstance(expected, types)


def _common_keys(actual: Mapping[Any, Any], expected: Mapping[Any, Any], id: tuple[Any, ...]) -> list[Any]:
    """The keys of two mappings, which must be the same; sorted where they can be."""
    here, there = set(actual.keys()), set(expected.keys())
    if here != there:
        text = f"Missing keys in the actual mapping: {_in_order(there - here)}\n"
        text += f"Additional keys in the actual mapping: {_in_order(here - there)}"
        raise ErrorMeta(AssertionError, f"The keys of the mappings do not match:\n{text}", id=id)
    return _in_order(here)


def _in_order(keys: set[Any]) -> list[Any]:
    try:
        return sorted(keys)
    except Exception:  # keys of several types
        return list(keys)


def _originate(
    actual: object, expected: object, pair_types: Sequence[type[Pair]], id: tuple[Any, ...], options: dict[str, Any]
) -> Pair:
    for pair_type in pair_types:
        try:
            return pair_type(actual, expected, id=id, **options)
        except UnsupportedInputs:
            continue
        except ErrorMeta:
            raise
        except Exception as error:
            values = "\n\nand\n\n".join(f"{type(v).__name__}(): {v}" for v in (actual, expected))
            raise RuntimeError(
                f"Originating a {pair_type.__name__}() at item {item_text(id)} with\n\n{values}\n\n"
                "resulted in the unexpected exception above."
            ) from error
    raise ErrorMeta(TypeError, f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}.", id=id)


def not_close_error_metas(
    actual: object,
    expected: object,
    *,
    pair_types: Sequence[type[Pair]] = (ObjectPair,),
    sequence_types: tuple[type, ...] = (Sequence,),
    mapping_types: tuple[type, ...] = (Mapping,),
    **options: Any,
) -> list[ErrorMeta]:
    """What is wrong with `actual`, for each value in it that differs. Structures that cannot be compared raise."""
    __tracebackhide__ = True
    try:
        pairs = originate_pairs(
            actual, expected, pair_types=pair_types, sequence_types=sequence_types, mapping_types=mapping_types, **options
        )
    except ErrorMeta as meta:
        raise meta.to_error() from None
    return [found for pair in pairs if (found := _difference(pair)) is not None]


def _difference(pair: Pair) -> ErrorMeta | None:
    try:
        pair.compare()
    except ErrorMeta as meta:
        return meta.with_traceback(None)  # whose frames would own the meta, and keep tensors until the next collection
    except Exception as error:
        raise RuntimeError(f"Comparing\n\n{pair}\n\nresulted in the unexpected exception above.") from error
    return None


def assert_close(
    actual: object,
    expected: object,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raise AssertionError unless `actual` is close to `expected`: |actual - expected| <= atol + rtol * |expected|, element by element.

    Without tolerances those of the dtype are taken; integers must be equal. `msg` is the text of the error, or makes it from the usual one.
    """
    __tracebackhide__ = True
    metas = not_close_error_metas(
        actual,
        expected,
        pair_types=(NonePair, BooleanPair, NumberPair, TensorLikePair),
        allow_subclasses=allow_subclasses,
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_device=check_device,
        check_dtype=check_dtype,
        check_layout=check_layout,
        check_stride=check_stride,
    )
    if metas:
        raise metas[0].to_error(msg)


def assert_allclose(
    actual: Any, expected: Any, rtol: float | None = None, atol: float | None = None, equal_nan: bool = True, msg: str = ""
) -> None:
    """The older `assert_close`, with wider tolerances, which does not check dtypes."""
    warnings.warn(
        "`torch.testing.assert_allclose()` is deprecated since 1.12. Please use `torch.testing.assert_close()` instead.",
        FutureWarning,
        stacklevel=2,
    )
    one = actual if isinstance(actual, Tensor) else as_tensor(actual)
    other = expected if isinstance(expected, Tensor) else as_tensor(expected, dtype=one.dtype)
    if rtol is None and atol is None:
        rtol, atol = default_tolerances(one, other, dtype_precisions=_ALLCLOSE)
    assert_close(one, other, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False, msg=msg or None)
