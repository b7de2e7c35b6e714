"""The errors of `torch.onnx.export`'s steps."""
from .errors import OnnxExporterError


class TorchExportError(OnnxExporterError):
    """The model could not be recorded."""


class ConversionError(OnnxExporterError):
    """What was recorded could not be written as ONNX."""
