"""Two values that are to be compared: a class for each kind of value.

A pair whose constructor raises `UnsupportedInputs` is for other kinds of values. What is wrong is raised as an `ErrorMeta`. Test suites derive
their own kinds of pairs: the methods that convert and check inputs are for them to override.
"""

from __future__ import annotations

import abc
import cmath
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from .. import _dtype, _memory_format
from .._creation import as_tensor
from .._promotion import promote_types
from .._tensor import Tensor
from ._mismatch import ErrorMeta, Text, make_scalar_mismatch_msg, make_tensor_mismatch_msg
from ._tolerances import get_tolerances

if TYPE_CHECKING:
    from .._types import Number

__all__ = ["BooleanPair", "NonePair", "NumberPair", "ObjectPair", "Pair", "TensorLikePair", "UnsupportedInputs"]

Id = tuple[Any, ...]


class UnsupportedInputs(Exception):  # noqa: N818 - torch's spelling
    """These values are for another kind of pair."""


class Pair(abc.ABC):
    """Two values, and how they are compared. Each kind takes the options that concern it."""

    def __init__(self, actual: Any, expected: Any, *, id: Id = (), **unknown_parameters: Any) -> None:
        self.actual, self.expected, self.id = actual, expected, id
        self._unknown_parameters = unknown_parameters

    @staticmethod
    def _inputs_not_supported() -> NoReturn:
        raise UnsupportedInputs

    @staticmethod
    def _check_inputs_isinstance(*inputs: Any, cls: type | tuple[type, ...]) -> None:
        if not all(isinstance(value, cls) for value in inputs):
            raise UnsupportedInputs

    def _fail(self, type: type[Exception], msg: str, *, id: Id = ()) -> NoReturn:
        """Raise an error about this pair. Before `Pair.__init__` has run, `id` must be given."""
        raise ErrorMeta(type, msg, id=id or vars(self).get("id", ()))

    @abc.abstractmethod
    def compare(self) -> None:
        """Raise an `ErrorMeta` if the values differ."""

    def extra_repr(self) -> Sequence[str | tuple[str, Any]]:
        """Names of attributes, or names and values, that belong into the repr."""
        return []

    def __repr__(self) -> str:
        extra = [(part, getattr(self, part)) if isinstance(part, str) else part for part in self.extra_repr()]
        shown = [("id", self.id), ("actual", self.actual), ("expected", self.expected), *extra]
        return "\n".join([f"{type(self).__name__}(", *[f"    {name}={value!s}," for name, value in shown], ")"])


class ObjectPair(Pair):
    """Values of any kind, compared by `==`."""

    def compare(self) -> None:
        try:
            equal = self.actual == self.expected
        except Exception as error:
            raise ErrorMeta(ValueError, f"{self.actual} == {self.expected} failed with:\n{error}.", id=self.id) from error
        if not equal:
            self._fail(AssertionError, f"{self.actual} != {self.expected}")


class NonePair(Pair):
    """Two values of which at least one is None."""

    def __init__(self, actual: object, expected: object, **other_parameters: Any) -> None:
        if actual is not None and expected is not None:
            raise UnsupportedInputs
        super().__init__(actual, expected, **other_parameters)

    def compare(self) -> None:
        if self.actual is not self.expected:
            self._fail(AssertionError, f"None mismatch: {self.actual} is not {self.expected}")


class BooleanPair(Pair):
    """Booleans of Python and NumPy."""

    def __init__(self, actual: object, expected: object, *, id: Id = (), **other_parameters: Any) -> None:
        actual, expected = self._process_inputs(actual, expected, id=id)
        super().__init__(actual, expected, id=id, **other_parameters)

    @property
    def _supported_types(self) -> tuple[type, ...]:
        return (bool, np.bool_)

    def _process_inputs(self, actual: Any, expected: Any, *, id: Id) -> Sequence[bool]:
        self._check_inputs_isinstance(actual, expected, cls=self._supported_types)
        return self._to_bool(actual, id=id), self._to_bool(expected, id=id)

    def _to_bool(self, bool_like: Any, *, id: Id) -> bool:
        if isinstance(bool_like, bool | np.bool_):
            return bool(bool_like)
        raise ErrorMeta(TypeError, f"Unknown boolean type {type(bool_like)}.", id=id)

    def compare(self) -> None:
        if self.actual is not self.expected:
            self._fail(AssertionError, f"Booleans mismatch: {self.actual} is not {self.expected}")


class NumberPair(Pair):
    """Numbers of Python and NumPy, compared with the tolerances of int64, float64 and complex128."""

    _TYPE_TO_DTYPE: dict[type, _dtype.dtype] = {int: _dtype.int64, float: _dtype.float64, complex: _dtype.complex128}

    def __init__(
        self,
        actual: object,
        expected: object,
        *,
        id: Id = (),
        rtol: float | None = None,
        atol: float | None = None,
        equal_nan: bool = False,
        check_dtype: bool = False,
        **other_parameters: Any,
    ) -> None:
        actual, expected = self._process_inputs(actual, expected, id=id)
        super().__init__(actual, expected, id=id, **other_parameters)
        dtypes = [self._TYPE_TO_DTYPE[type(number)] for number in (actual, expected)]
        self.rtol, self.atol = get_tolerances(*dtypes, rtol=rtol, atol=atol, id=id)
        self.equal_nan, self.check_dtype = equal_nan, check_dtype

    @property
    def _supported_types(self) -> tuple[type, ...]:
        return (int, float, complex, np.number)

    def _process_inputs(self, actual: Any, expected: Any, *, id: Id) -> Sequence[Any]:
        self._check_inputs_isinstance(actual, expected, cls=self._supported_types)
        return self._to_number(actual, id=id), self._to_number(expected, id=id)

    def _to_number(self, number_like: Any, *, id: Id) -> Number:
        if isinstance(number_like, np.number):
            return number_like.item()
        if isinstance(number_like, int | float | complex):
            return number_like
        raise ErrorMeta(TypeError, f"Unknown number type {type(number_like)}.", id=id)

    def compare(self) -> None:
        actual, expected = self.actual, self.expected
        if self.check_dtype and type(actual) is not type(expected):
            self._fail(AssertionError, f"The (d)types do not match: {type(actual)} != {type(expected)}.")
        if actual == expected or (self.equal_nan and cmath.isnan(actual) and cmath.isnan(expected)):
            return
        difference = abs(actual - expected)
        if not (cmath.isfinite(difference) and difference <= self.atol + self.rtol * abs(expected)):
            self._fail(AssertionError, make_scalar_mismatch_msg(actual, expected, rtol=self.rtol, atol=self.atol))

    def extra_repr(self) -> Sequence[str]:
        return ("rtol", "atol", "equal_nan", "check_dtype")


# The parts of compressed tensors: the layout's name, and the methods for compressed and plain indices.
_BY_ROWS, _BY_COLUMNS = ("crow_indices", "col_indices"), ("ccol_indices", "row_indices")
_COMPRESSED = {
    _memory_format.sparse_csr: ("CSR", _BY_ROWS),
    _memory_format.sparse_csc: ("CSC", _BY_COLUMNS),
    _memory_format.sparse_bsr: ("BSR", _BY_ROWS),
    _memory_format.sparse_bsc: ("BSC", _BY_COLUMNS),
}
_LAYOUTS = frozenset({_memory_format.strided, _memory_format.jagged, _memory_format.sparse_coo, *_COMPRESSED})
_WIDE = dict.fromkeys((_dtype.uint16, _dtype.uint32, _dtype.uint64), _dtype.int64)  # torch: these promote with few others


class TensorLikePair(Pair):
    """Tensors, and what can be made one, of related types. Attributes are compared as far as the options ask for it."""

    def __init__(
        self,
        actual: object,
        expected: object,
        *,
        id: Id = (),
        allow_subclasses: bool = True,
        rtol: float | None = None,
        atol: float | None = None,
        equal_nan: bool = False,
        check_device: bool = True,
        check_dtype: bool = True,
        check_layout: bool = True,
        check_stride: bool = False,
        **other_parameters: Any,
    ) -> None:
        actual, expected = self._process_inputs(actual, expected, id=id, allow_subclasses=allow_subclasses)
        super().__init__(actual, expected, id=id, **other_parameters)
        self.rtol, self.atol = get_tolerances(actual, expected, rtol=rtol, atol=atol, id=id)
        self.equal_nan = equal_nan
        self.check_device, self.check_dtype, self.check_layout, self.check_stride = (
            check_device,
            check_dtype,
            check_layout,
            check_stride,
        )

    def _process_inputs(self, actual: Any, expected: Any, *, id: Id, allow_subclasses: bool) -> tuple[Tensor, Tensor]:
        is_related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
        if not is_related or not (allow_subclasses or type(actual) is type(expected)):
            raise UnsupportedInputs
        tensors = self._to_tensor(actual), self._to_tensor(expected)
        for tensor in tensors:
            self._check_supported(tensor, id=id)
        return tensors

    def _to_tensor(self, tensor_like: Any) -> Tensor:
        if isinstance(tensor_like, Tensor):
            return tensor_like
        try:
            return as_tensor(tensor_like)
        except Exception:
            raise UnsupportedInputs from None

    def _check_supported(self, tensor: Tensor, *, id: Id) -> None:
        if tensor.layout not in _LAYOUTS:
            raise ErrorMeta(ValueError, f"Unsupported tensor layout {tensor.layout}", id=id)

    def compare(self) -> None:
        self._compare_attributes(self.actual, self.expected)
        if "meta" not in (self.actual.device.type, self.expected.device.type):
            self._compare_values(*self._equalize_attributes(self.actual, self.expected))

    def _compare_attributes(self, actual: Tensor, expected: Tensor) -> None:
        """Shape, layout, stride, device and dtype, as far as asked for."""
        strided = actual.layout is expected.layout is _memory_format.strided
        read: list[tuple[str, bool, Callable[[Tensor], Any]]] = [
            ("shape", True, lambda t: t.shape),
            ("layout", self.check_layout, lambda t: t.layout),
            ("stride()", self.check_stride and strided, lambda t: t.stride()),
            ("device", self.check_device, lambda t: t.device),
            ("dtype", self.check_dtype, lambda t: t.dtype),
        ]
        for name, is_checked, of in read:
            if is_checked and of(actual) != of(expected):
                self._fail(AssertionError, f"The values for attribute '{name}' do not match: {of(actual)} != {of(expected)}.")

    def _equalize_attributes(self, actual: Tensor, expected: Tensor) -> tuple[Tensor, Tensor]:
        """The tensors on one device, with a common dtype and layout, where these were allowed to differ."""
        if actual.device != expected.device:
            actual, expected = actual.cpu(), expected.cpu()
        if actual.dtype is not expected.dtype:
            common = promote_types(*[_WIDE.get(t.dtype, t.dtype) for t in (actual, expected)])
            actual, expected = actual.to(common), expected.to(common)
        if actual.layout is not expected.layout:
            actual, expected = (t if t.layout is _memory_format.strided else t.to_dense() for t in (actual, expected))
        return actual, expected

    def _compare_values(self, actual: Tensor, expected: Tensor) -> None:
        if actual.layout is _memory_format.sparse_coo:
            self._compare_coordinates(actual, expected)
        elif actual.layout in _COMPRESSED:
            self._compare_compressed(actual, expected, *_COMPRESSED[actual.layout])
        else:
            if actual.dtype.is_floating_point and actual.dtype.itemsize == 1 and (self.rtol or self.atol):
                self._fail(
                    AssertionError,
                    f"Rtol={self.rtol} and atol={self.atol} are not supported for bitwise comparison of low dimensional floats. "
                    "Please use rtol=0.0 and atol=0.0.",
                )
            self._compare_close(actual, expected)

    def _compare_coordinates(self, actual: Tensor, expected: Tensor) -> None:
        """Tensors in coordinate form: their numbers of dimensions and of values, their indices, their values."""
        self._same("The number of sparse dimensions in sparse COO tensors", actual.sparse_dim(), expected.sparse_dim())
        self._same("The number of specified values in sparse COO tensors", actual._nnz(), expected._nnz())
        self._compare_equal(actual._indices(), expected._indices(), "Sparse COO indices")
        self._compare_close(actual._values(), expected._values(), "Sparse COO values")

    def _compare_compressed(self, actual: Tensor, expected: Tensor, name: str, parts: tuple[str, str]) -> None:
        """Compressed tensors: their numbers of values, both kinds of indices, whose dtypes may differ, and their values."""
        self._same(f"The number of specified values in sparse {name} tensors", actual._nnz(), expected._nnz())
        for part in parts:
            one, other = getattr(actual, part)(), getattr(expected, part)()
            self._compare_equal(one.to(_dtype.int64), other.to(_dtype.int64), f"Sparse {name} {part}")
        self._compare_close(actual.values(), expected.values(), f"Sparse {name} values")

    def _same(self, what: str, actual: int, expected: int) -> None:
        if actual != expected:
            self._fail(AssertionError, f"{what} does not match: {actual} != {expected}")

    def _compare_equal(self, actual: Tensor, expected: Tensor, identifier: Text) -> None:
        if not bool((actual == expected).all()):
            self._fail_values(actual, expected, actual == expected, rtol=0, atol=0, identifier=identifier)

    def _compare_close(self, actual: Tensor, expected: Tensor, identifier: Text = None) -> None:
        tolerances = {"rtol": self.rtol, "atol": self.atol}
        matches = actual.isclose(expected, **tolerances, equal_nan=self.equal_nan)
        if not bool(matches.all()):
            self._fail_values(actual, expected, matches, **tolerances, identifier=identifier)

    def _fail_values(
        self, actual: Tensor, expected: Tensor, matches: Tensor, *, rtol: float, atol: float, identifier: Text
    ) -> NoReturn:
        actual, expected = actual.detach(), expected.detach()
        options: dict[str, Any] = {"rtol": rtol, "atol": atol, "identifier": identifier}
        if not actual.shape:
            self._fail(AssertionError, make_scalar_mismatch_msg(actual.item(), expected.item(), **options))
        self._fail(AssertionError, make_tensor_mismatch_msg(actual, expected, matches, **options))

    def extra_repr(self) -> Sequence[str]:
        return ("rtol", "atol", "equal_nan", "check_device", "check_dtype", "check_layout", "check_stride")
