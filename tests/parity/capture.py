"""Samples for every operator of the registry, caught while PyTorch's operator database runs on this package.

The database knows public functions; the registry also has what they are made of (`aten::threshold_backward`, …). A layer
under the Profiler key copies the arguments of every call, so that each registered overload can be called again on its own:
with torch's overload of the same name, or by gradcheck.

    python tests/parity/capture.py         refreshes tests/data/op_samples.npz, the samples that gradcheck uses without torch
"""

from __future__ import annotations

import contextlib
import json
import random
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import mindtorch_v2 as mt
from mindtorch_v2._dispatch import dispatcher, keys
from mindtorch_v2._dispatch.codegen import Body
from mindtorch_v2._dispatch.op import Op

DATA = Path(__file__).parent.parent / "data" / "op_samples.npz"

Sample = tuple[Any, ...]
Samples = dict[str, list[Sample]]


def label(op: Op) -> str:
    return f"{op.qualified_name}.{op.overload_name}"


def copied(x: Any) -> Any:
    """The argument as it is now, apart from any graph."""
    if isinstance(x, mt.Tensor):
        t = mt.from_numpy(x._array.copy(order="K")) if x._array.flags.writeable or not x._array.size else _expanded(x)
        t.__dict__["wants_grad"] = bool(x.requires_grad)
        return t
    if isinstance(x, list | tuple):
        return type(x)(copied(v) for v in x) if type(x) in (list, tuple) else tuple(copied(v) for v in x)
    return x


def _expanded(x: Any) -> Any:
    return mt.from_numpy(np.array(x._array, copy=True))


def _signature(x: Any) -> Any:
    if isinstance(x, mt.Tensor):
        return (x.dtype.name, x._array.ndim, x._array.size == 0)
    if isinstance(x, list | tuple):
        return tuple(_signature(v) for v in x[:4])
    return x if isinstance(x, bool | str | type(None)) else type(x).__name__


def _wants_grad(x: Any) -> bool:
    if isinstance(x, mt.Tensor):
        return x.requires_grad and x._array.size > 0
    return isinstance(x, list | tuple) and any(_wants_grad(v) for v in x)


def _size(x: Any) -> int:
    if isinstance(x, mt.Tensor):
        return x._array.size
    return sum(_size(v) for v in x) if isinstance(x, list | tuple) else 0


@contextlib.contextmanager
def capturing(kept: Samples, *, per_op: int, largest: int, differentiable: bool = False) -> Iterator[None]:
    """Keep up to `per_op` differing calls of each operator with at most `largest` elements; or only those with gradients to come."""
    seen: dict[str, set[Any]] = {}

    def snapshot(op: Op, arguments: Sample) -> Any:
        name = label(op)
        if len(kept.get(name, ())) >= per_op or _size(arguments) > largest or any(type(a) is mt.Generator for a in arguments):
            return None
        if differentiable and not any(_wants_grad(a) for a in arguments):
            return None
        signature = repr(_signature(arguments))
        return None if signature in seen.get(name, ()) else (name, signature, copied(arguments))

    def keep(taken: Any) -> None:
        if taken is not None:
            name, signature, arguments = taken
            if signature not in seen.setdefault(name, set()):
                seen[name].add(signature)
                kept.setdefault(name, []).append(arguments)

    def layer(op: Op, full: int, body: Body) -> Body:
        # copied before the call, which may write to its arguments, and kept after it, when it did not raise
        packed = "(" + "".join(f"{n}, " for n in op.schema.argument_names) + ")"
        lines = [f"taken = snapshot(op, {packed})", *body.lines, "keep(taken)"]
        return Body(lines, {**body.names, "snapshot": snapshot, "keep": keep, "op": op})

    profiler = dispatcher._layers.get(keys.PROFILER)
    if profiler is not None:
        dispatcher.unregister_layer(keys.PROFILER)
    dispatcher.register_layer(keys.PROFILER, layer)
    dispatcher.activate(keys.PROFILER)
    try:
        yield
    finally:
        dispatcher.deactivate(keys.PROFILER)
        dispatcher.unregister_layer(keys.PROFILER)
        if profiler is not None:
            dispatcher.register_layer(keys.PROFILER, profiler)


def run_database(dtype: str = "float32") -> None:
    """Run the samples of the database, forward and twice backward."""
    import opinfo
    import torch

    torch_dtype = getattr(torch, dtype)
    for op in opinfo._database():
        for seed in (random.seed, np.random.seed, torch.manual_seed, mt.manual_seed):
            seed(0)  # the same samples in every run
        try:
            ours = opinfo.our_function(op)
            samples = list(op.sample_inputs("cpu", torch_dtype, requires_grad=op.supports_autograd))
        except Exception:
            continue
        for sample in samples[:25]:
            with contextlib.suppress(Exception):
                args, kwargs, pairs = opinfo.convert_sample(sample)
                result = ours(*args, **kwargs)
                opinfo.gradients(result, [p[1] for p in pairs], mt, second=op.supports_gradgrad)


def for_registry() -> Samples:
    """Up to four small calls of every operator that the database and the extra calls reach."""
    import torch
    from extra_calls import EXTRA

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    kept: Samples = {}
    with capturing(kept, per_op=4, largest=3000):
        run_database()
        for call in EXTRA:
            call()
    return kept


# --- samples on disk: for gradcheck without torch ---------------------------------------------------------------------


def encode(x: Any, arrays: dict[str, np.ndarray]) -> Any:
    if isinstance(x, mt.Tensor):
        name = f"a{len(arrays)}"
        arrays[name] = x._array
        return {"tensor": name, "grad": x.__dict__.get("wants_grad", False)}
    if isinstance(x, list | tuple):
        return {"list": [encode(v, arrays) for v in x]}
    if isinstance(x, mt.dtype):
        return {"dtype": x.name}
    if isinstance(x, mt.device):
        return {"device": str(x)}
    if isinstance(x, float | int | bool | str | type(None)):
        return x
    if isinstance(x, complex):
        return {"complex": [x.real, x.imag]}
    raise TypeError(type(x).__name__)


def decode(x: Any, arrays: Any) -> Any:
    if not isinstance(x, dict):
        return x
    if "tensor" in x:
        t = mt.from_numpy(arrays[x["tensor"]].copy(order="K"))
        t.__dict__["wants_grad"] = x["grad"]
        return t
    if "list" in x:
        return [decode(v, arrays) for v in x["list"]]
    if "dtype" in x:
        return getattr(mt, x["dtype"])
    if "complex" in x:
        return complex(*x["complex"])
    return mt.device(x["device"])


def load() -> Samples:
    arrays = np.load(DATA)
    index = json.loads(bytes(arrays["index"]).decode())
    return {name: [tuple(decode(v, arrays) for v in sample) for sample in samples] for name, samples in index.items()}


def write() -> None:
    from mindtorch_v2._dispatch import registry

    warnings.simplefilter("ignore")
    kept: Samples = {}
    with capturing(kept, per_op=4, largest=1200, differentiable=True):
        run_database("float64")
    arrays: dict[str, np.ndarray] = {}
    index: dict[str, list[Any]] = {}
    for op in registry.all_ops():
        if not op.formulas or op.schema.is_inplace:
            continue
        for sample in kept.get(label(op), []):
            with contextlib.suppress(TypeError):
                index.setdefault(label(op), []).append([encode(v, arrays) for v in sample])
    arrays["index"] = np.frombuffer(json.dumps(index).encode(), np.uint8)
    DATA.parent.mkdir(exist_ok=True)
    np.savez_compressed(DATA, **arrays)
    print(f"{len(index)} operators, {DATA.stat().st_size} bytes")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    write()
