"""Event files for TensorBoard, written without TensorFlow or the tensorboard package."""
from .writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "SummaryWriter"]
