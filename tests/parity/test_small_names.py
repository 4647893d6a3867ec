"""Names of torch that are a line or two: what they give, and what they raise, as in a PyTorch without a GPU."""

import warnings

import pytest
import torch

import mindtorch_v2 as mt

pytestmark = pytest.mark.parity

CALLS = """
lib.cuda.FloatStorage(3)
lib.cuda.FloatStorage()
lib.cuda.FloatStorage([1, 2])
lib.TypedStorage([1, 2], device="cuda")
isinstance(lib.ones(1).storage(), lib.cuda.FloatStorage)
isinstance(lib.ones(1).storage(), lib.FloatStorage)
str(lib.cuda.HalfStorage.dtype)
lib.cuda.FloatStorage(wrap_storage=lib.ones(1).untyped_storage())
issubclass(lib.cuda.FloatStorage, lib.TypedStorage)
lib.cuda.FloatStorage.from_buffer(b"1234")
lib.cuda.profiler.start()
lib.cuda.profiler.stop()
lib.cuda.profiler.profile().__enter__()
lib.cuda.current_solver_handle()
lib.backends.cuda.preferred_linalg_library("default").name
lib.backends.cuda.preferred_linalg_library("cusolver")
lib.backends.cuda.preferred_linalg_library("foo")
lib.backends.cuda.preferred_linalg_library(3)
during(lib.backends.cudnn.flags(fp32_precision="tf32"), lambda: lib.backends.cudnn.fp32_precision)
during(lib.backends.mkldnn.flags(fp32_precision="bf16"), lambda: lib.backends.mkldnn.fp32_precision)
during(lib.backends.cudnn.flags(enabled=True, fp32_precision="bf16"), int)
during(lib.backends.mkldnn.flags(enabled=True, fp32_precision="foo"), int)
lib.wait(lib.fork(abs, -2))
lib.JITException is lib.jit.Error
lib.FileCheck is lib.testing.FileCheck
""".strip().splitlines()


def during(context, read):
    """What is read inside of a context. torch keeps the other switches of one that refuses its precision, so these are given as they are."""
    with context:
        return read()


def _outcome(lib, call):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return eval(call, {"lib": lib, "during": during})
        except Exception as error:
            return type(error).__name__, str(error)[:60]


@pytest.mark.parametrize("call", CALLS)
def test_outcome(call):
    assert _outcome(mt, call) == _outcome(torch, call)
