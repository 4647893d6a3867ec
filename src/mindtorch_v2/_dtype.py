"""The element types: `torch.float32` and its siblings, each bound to the NumPy dtype that holds it."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

__all__ = ["dtype", "from_numpy_dtype", "get_default_dtype", "numpy_dtype", "set_default_dtype"]

BOOL, INTEGER, FLOAT, COMPLEX = range(4)
SCALAR_NAMES = {  # as error messages and legacy type names spell them
    "bool": "Bool", "uint8": "Byte", "int8": "Char", "int16": "Short", "int32": "Int", "int64": "Long",
    "uint16": "UInt16", "uint32": "UInt32", "uint64": "UInt64", "float16": "Half", "bfloat16": "BFloat16",
    "float32": "Float", "float64": "Double", "complex64": "ComplexFloat", "complex128": "ComplexDouble",
}  # fmt: skip

CPP_NAMES = {
    "bool": "bool", "uint8": "unsigned char", "int8": "signed char", "int16": "short int", "int32": "int", "int64": "long int",
    "uint16": "short unsigned int", "uint32": "unsigned int", "uint64": "long unsigned int", "float16": "c10::Half",
    "bfloat16": "c10::BFloat16", "float32": "float", "float64": "double", "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
}  # fmt: skip


class dtype:  # noqa: N801 - torch's spelling
    """An element type. Instances are singletons, compared by identity."""

    __slots__ = ("category", "inexact", "is_complex", "is_floating_point", "is_signed", "itemsize", "name", "np", "scalar_name")

    def __init__(self, name: str, np_dtype: Any, category: int) -> None:
        self.name = name
        self.np: np.dtype[Any] = np.dtype(np_dtype)
        self.itemsize: int = self.np.itemsize
        self.category = category
        self.is_floating_point = category == FLOAT
        self.is_complex = category == COMPLEX
        self.inexact = category >= FLOAT
        self.scalar_name = SCALAR_NAMES[name]
        self.is_signed = category >= FLOAT or (category == INTEGER and self.np.kind == "i")

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str | tuple[Any, ...]:
        return (by_name, (self.name,))

    @property
    def cpp_name(self) -> str:
        """C++'s name of the type, which some error messages use."""
        return CPP_NAMES[self.name]

    def to_complex(self) -> dtype:
        """The complex type whose parts have this precision."""
        if self.is_complex:
            return self
        if self.category != FLOAT:
            raise RuntimeError(f"Unknown Complex ScalarType for {self.scalar_name}")
        return {float64: complex128, float16: complex32}.get(self, complex64)

    def to_computed_complex(self) -> dtype:
        """The complex type that is computed with where parts have this precision: of half precision there is none."""
        found = self.to_complex()
        return complex64 if found is complex32 else found

    @property
    def abbr(self) -> str:
        """A short name: `f32`, `i64`, `bf16`."""
        word = next((w for w in _LETTERS if self.name.startswith(w)), "")
        size = self.name.removeprefix(word).replace("_", "")
        if word == "bits" and "x" not in size:
            size += "x1"
        return _LETTERS[word] + size if word else "b8"

    def to_real(self) -> dtype:
        """The real type of this complex type's parts."""
        if not self.is_complex:
            return self
        return {complex128: float64, complex32: float16}.get(self, float32)


_LETTERS = {"bfloat": "bf", "float": "f", "complex": "c", "uint": "u", "int": "i", "bits": "b"}


class NarrowTypeError(NotImplementedError):
    """Something asked for the NumPy type of an element type that is kept as bits."""

    def __init__(self, d: NarrowDtype) -> None:
        self.dtype = d
        super().__init__(
            f"not implemented for '{d.scalar_name}': tensors of {d} are made, loaded, saved, viewed, copied and converted with .to(), and "
            "nothing is computed with them. Compute in torch.float32, and convert the result"
        )


class NarrowDtype(dtype):
    """An element type that is kept and converted, and not computed with: tensors of it hold its bits as integers.

    It has no NumPy type, so that whatever would compute with one raises.
    """

    __slots__ = ("bits", "decoded")

    def __init__(self, name: str, scalar_name: str, category: int, bits: Any, *, decoded: Any = None, signed: bool = True) -> None:
        self.name, self.scalar_name, self.category = name, scalar_name, category
        self.bits: np.dtype[Any] = np.dtype(bits)
        self.decoded: np.dtype[Any] | None = None if decoded is None else np.dtype(decoded)  # what the bits are to NumPy
        self.itemsize = self.bits.itemsize
        self.is_floating_point = category == FLOAT
        self.is_complex = category == COMPLEX
        self.inexact = category >= FLOAT
        self.is_signed = signed

    @property
    def np(self) -> Any:  # type: ignore[override]
        raise NarrowTypeError(self)

    @property
    def cpp_name(self) -> str:
        return self.scalar_name


bool_ = dtype("bool", np.bool_, BOOL)
uint8 = dtype("uint8", np.uint8, INTEGER)
int8 = dtype("int8", np.int8, INTEGER)
int16 = dtype("int16", np.int16, INTEGER)
int32 = dtype("int32", np.int32, INTEGER)
int64 = dtype("int64", np.int64, INTEGER)
uint16 = dtype("uint16", np.uint16, INTEGER)
uint32 = dtype("uint32", np.uint32, INTEGER)
uint64 = dtype("uint64", np.uint64, INTEGER)
float16 = dtype("float16", np.float16, FLOAT)
bfloat16 = dtype("bfloat16", ml_dtypes.bfloat16, FLOAT)
float32 = dtype("float32", np.float32, FLOAT)
float64 = dtype("float64", np.float64, FLOAT)
complex64 = dtype("complex64", np.complex64, COMPLEX)
complex128 = dtype("complex128", np.complex128, COMPLEX)

ALL = (
    bool_, uint8, int8, int16, int32, int64, uint16, uint32, uint64,
    float16, bfloat16, float32, float64, complex64, complex128,
)  # fmt: skip
complex32 = NarrowDtype("complex32", "ComplexHalf", COMPLEX, np.uint32, decoded=np.float16)  # two of them
NARROW: tuple[NarrowDtype, ...] = (
    complex32,
    *(
        NarrowDtype(
            name, name.replace("f", "F", 1), FLOAT, np.uint8, decoded=getattr(ml_dtypes, name), signed=name != "float8_e8m0fnu"
        )
        for name in ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu")
    ),
    NarrowDtype("float4_e2m1fn_x2", "Float4_e2m1fn_x2", FLOAT, np.uint8),
    *(
        NarrowDtype(f"bits{n}", f"Bits{n}", INTEGER, np.uint16 if n == "16" else np.uint8, signed=False)
        for n in ("8", "16", "1x8", "2x4", "4x2")
    ),
    *(NarrowDtype(f"uint{n}", f"UInt{n}", INTEGER, np.uint8, signed=False) for n in range(1, 8)),
    *(NarrowDtype(f"int{n}", f"Int{n}", INTEGER, np.uint8) for n in range(1, 8)),
)
ALIASES = {
    "half": float16, "float": float32, "double": float64, "cfloat": complex64, "cdouble": complex128,
    "short": int16, "int": int32, "long": int64,
}  # fmt: skip
PYTHON_TYPES: dict[Any, dtype] = {float: float64, int: int64, bool: bool_, complex: complex128}  # taken where a dtype is
NOT_COUNTED = (bool_, uint16, uint32, uint64, complex64, complex128)  # torch: of these there are no ranges and no permutations
BY_NAME: dict[str, dtype] = {d.name: d for d in (*ALL, *NARROW)}
FROM_NUMPY: dict[np.dtype[Any], dtype] = {d.np: d for d in ALL}

_default = float32


def by_name(name: str) -> dtype:
    return BY_NAME[name]


def as_dtype(given: Any, function: str = "", argument: str = "dtype") -> dtype:
    """The dtype that an argument means: itself, or that of a Python type."""
    if isinstance(given, dtype):
        return given
    found = PYTHON_TYPES.get(given) if given.__class__ is type else None
    if found is None:
        given_type = given.__name__ if isinstance(given, type) else type(given).__name__
        raise TypeError(f"{function}{function and '(): '}argument '{argument}' must be torch.dtype, not {given_type}")
    return found


def get_default_dtype() -> dtype:
    """The type of new floating-point tensors when none is given."""
    return _default


def set_default_dtype(d: dtype, /) -> None:
    """Set the type of new floating-point tensors: one of the floating-point types."""
    global _default
    if not isinstance(d, dtype):
        raise TypeError(f"invalid dtype object: expected a floating point dtype, not {type(d).__name__}")
    if not d.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    _default = d


def default_complex() -> dtype:
    return _default.to_computed_complex()


def from_numpy_dtype(np_dtype: Any) -> dtype:
    """The dtype that holds a NumPy dtype's values."""
    found = FROM_NUMPY.get(np.dtype(np_dtype))
    if found is None:
        raise TypeError(
            f"can't convert np.ndarray of type numpy.{np.dtype(np_dtype).type.__name__}. The only supported types are: float64, float32, "
            "float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, and bool."
        )
    return found


def numpy_dtype(d: dtype) -> np.dtype[Any]:
    return d.np


def of_scalar(value: Any) -> dtype:
    """The dtype of a tensor made from this Python number."""
    if isinstance(value, bool):
        return bool_
    if isinstance(value, int):
        return int64
    if isinstance(value, float):
        return _default
    if isinstance(value, complex):
        return _default.to_computed_complex()
    raise TypeError(f"not a number: {type(value).__name__}")
