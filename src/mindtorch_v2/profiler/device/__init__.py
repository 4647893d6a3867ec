"""What a device did in a recording, from the rows of its streams and of the calls that launched them."""

from __future__ import annotations

from .activity import CopySums, Device, DeviceActivity, KernelSums, Stream

__all__ = ["CopySums", "Device", "DeviceActivity", "KernelSums", "Stream"]
