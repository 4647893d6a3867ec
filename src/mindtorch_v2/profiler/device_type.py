"""The kinds of device an event can be on."""

from __future__ import annotations

import enum

__all__ = ["DeviceType"]


class DeviceType(enum.Enum):
    """Devices by torch's numbers. An NPU is a `PrivateUse1` device, and its second name is `NPU`."""

    CPU = 0
    CUDA = 1
    MKLDNN = 2
    OPENGL = 3
    OPENCL = 4
    IDEEP = 5
    HIP = 6
    FPGA = 7
    MAIA = 8
    XLA = 9
    Vulkan = 10
    Metal = 11
    XPU = 12
    MPS = 13
    MTIA = 19
    Meta = 14
    HPU = 15
    VE = 16
    Lazy = 17
    IPU = 18
    PrivateUse1 = 20
    NPU = PrivateUse1

    def __int__(self) -> int:
        return self.value

    def __index__(self) -> int:
        return self.value
