"""torch.utils.tensorboard: what a program wants shown, in files for TensorBoard, whose package writes them."""

from __future__ import annotations

try:
    from tensorboard.summary.writer.record_writer import RecordWriter
except ImportError as error:
    raise ImportError("torch.utils.tensorboard needs the package tensorboard; install it with pip", name="tensorboard") from error

from .writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "RecordWriter", "SummaryWriter"]
