"""`torch.onnx.errors`."""
from __future__ import annotations

__all__ = ["OnnxExporterWarning", "SymbolicValueError", "UnsupportedOperatorError"]


class OnnxExporterWarning(UserWarning):
    """Something a reader of the exported file should know."""


class OnnxExporterError(RuntimeError):
    """What every error of an export is."""


class UnsupportedOperatorError(OnnxExporterError):
    """ONNX, or this opset, has nothing for an operator."""

    def __init__(self, name: str, version: int, supported_version: int | None) -> None:
        text = f"Exporting the operator '{name}' to ONNX opset version {version} is not supported"
        if supported_version is not None:
            text += f". Support for this operator was added in version {supported_version}, try exporting with this version"
        elif not name.startswith(("aten::", "prim::", "quantized::")):
            text = (f"ONNX export failed on an operator with unrecognized namespace {name}. If you are trying to export a custom operator, make sure you "
                    "registered it with the right domain and version.")
        super().__init__(text)


class SymbolicValueError(OnnxExporterError):
    """A function that builds nodes got a value it cannot take."""

    def __init__(self, msg: str, value: object) -> None:
        super().__init__(f"{msg}  [Caused by the value '{value}']")


OnnxExporterError.__module__ = "torch.onnx"
