"""torch.ao: quantization, of which there are the parts that change nothing before a model is converted."""

from . import quantization

__all__ = ["quantization"]
