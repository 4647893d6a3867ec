"""torch.library: operators of the user's own, with kernels per device, shape rules and derivatives."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from . import _op_packet, _opcheck
from ._custom_op import CustomOpDef, custom_op
from ._infer_schema import infer_schema
from ._op_registrations import (
    Library,
    define,
    find_op,
    impl,
    register_autocast,
    register_autograd,
    register_fake,
    register_kernel,
    register_torch_dispatch,
    register_vmap,
    scoped_library,
)

__all__ = [
    "CustomOpDef",
    "Library",
    "custom_op",
    "define",
    "impl",
    "infer_schema",
    "opcheck",
    "register_autocast",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_torch_dispatch",
    "register_vmap",
]

_scoped_library = scoped_library
impl_abstract = register_fake


def opcheck(
    op: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None, *, test_utils: Any = None, raise_exception: bool = True,
    atol: float | None = None, rtol: float | None = None,
) -> dict[str, str]:  # fmt: skip
    """Check an operator's registrations on sample arguments: its schema, that it has a derivative, and its shape rule.

    Nothing is traced here: in place of a traced run, `test_aot_dispatch_dynamic` compares two runs on copies of the arguments. Derivatives
    are compared with differences by `torch.autograd.gradcheck`.
    """
    call = _op_packet.overload_of(find_op(op))
    checks: dict[str, Callable[..., None]] = {
        "test_schema": _opcheck.check_schema,
        "test_autograd_registration": _opcheck.check_autograd_registration,
        "test_faketensor": _opcheck.check_fake,
        "test_aot_dispatch_dynamic": functools.partial(_opcheck.check_repeated, atol=atol, rtol=rtol),
    }
    chosen = list(checks) if test_utils is None else [test_utils] if isinstance(test_utils, str) else list(test_utils)
    results: dict[str, str] = {}
    for name in chosen:
        if name not in checks:
            raise ValueError(f"unknown test {name!r}; known are {', '.join(checks)}")
        try:
            checks[name](call, args, kwargs or {})
            results[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise
            results[name] = f"{type(error).__name__}: {error}"
    return results
