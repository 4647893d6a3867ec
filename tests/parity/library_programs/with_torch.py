"""Runs a program with PyTorch, in a place where torchvision's operators in C++ cannot be loaded: it needs two of them to be known."""

import runpy
import sys

import torch

for name in ("nms", "qnms"):
    torch.library.define(f"torchvision::{name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
