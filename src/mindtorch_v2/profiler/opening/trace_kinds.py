"""The categories of a trace's slices: what kind of event each is, and on which device."""

from __future__ import annotations

__all__ = ["DEVICES", "KIND_OF", "ON_DEVICE", "USE_DEVICE"]

# The kind of a slice by its category.
KIND_OF = {
    "cpu_op": "op",
    "user_annotation": "scope",
    "gpu_user_annotation": "scope",
    "python_function": "python_function",
    "cuda_runtime": "runtime",
    "cuda_driver": "runtime",
    "xpu_runtime": "runtime",
    "xpu_driver": "runtime",
    "mtia_runtime": "runtime",
    "privateuse1_runtime": "runtime",
    "privateuse1_driver": "runtime",
    "glow_runtime": "runtime",
    "enqueue": "runtime",
    "dequeue": "runtime",
    "kernel": "kernel",
    "concurrent_kernel": "kernel",
    "gpu_memcpy": "kernel",
    "gpu_memset": "kernel",
    "mtia_ccp_events": "kernel",
    "mtia_workloadd": "kernel",
    "collective_comm": "kernel",
    "cuda_profiler_range": "kernel",
    "cuda_sync": "sync",
    "overhead": "overhead",
    "operator": "op",  # torch 1.8 wrote these
    "runtime": "runtime",
    "memcpy": "kernel",
    "memset": "kernel",
}
ON_DEVICE = {*(c for c, kind in KIND_OF.items() if kind in ("kernel", "sync")), "gpu_user_annotation"}

# The device by the category of its runtime's calls.
DEVICES = {
    "mtia_runtime": "MTIA",
    "mtia_ccp_events": "MTIA",
    "xpu_runtime": "XPU",
    "xpu_driver": "XPU",
    "privateuse1_runtime": "PrivateUse1",
    "privateuse1_driver": "PrivateUse1",
}
USE_DEVICE = {"CUDA": "cuda", "MTIA": "mtia", "XPU": "xpu", "PrivateUse1": "npu", "NPU": "npu"}
