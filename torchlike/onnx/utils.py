"""`torch.onnx.utils`: the exporter before torch.export, by its own name."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from .._exporting import state as exporting
from ..nn import Module
from . import _export
from ._symbolic import (  # noqa: F401
    OperatorExportTypes,
    TrainingMode,
    register_custom_op_symbolic,
    unregister_custom_op_symbolic,
)

__all__ = ["export", "is_in_onnx_export", "register_custom_op_symbolic", "select_model_mode_for_export", "unregister_custom_op_symbolic"]


def is_in_onnx_export() -> bool:
    """Whether a model is being exported to ONNX."""
    return exporting.onnx


@contextmanager
def select_model_mode_for_export(model: Module, mode: TrainingMode) -> Iterator[None]:
    """Inside the block the model is in the mode that it is exported in."""
    if not isinstance(mode, TrainingMode):
        raise TypeError(f"'mode' should be a torch.onnx.TrainingMode enum, but got '{type(mode)}'.")
    modes = [(m, m.training) for m in model.modules()] if isinstance(model, Module) else []
    try:
        if modes and mode is not TrainingMode.PRESERVE:
            model.train(mode is TrainingMode.TRAINING)
        yield
    finally:
        for m, training in modes:
            m.training = training


def export(model: Any, args: Any, f: Any, *, kwargs: Mapping[str, Any] | None = None, export_params: bool = True, verbose: bool = False,
           training: TrainingMode = TrainingMode.EVAL, input_names: Sequence[str] | None = None, output_names: Sequence[str] | None = None,
           operator_export_type: OperatorExportTypes = OperatorExportTypes.ONNX, opset_version: int | None = None, do_constant_folding: bool = True,
           dynamic_axes: Mapping | None = None, keep_initializers_as_inputs: bool | None = None, custom_opsets: Mapping[str, int] | None = None,
           export_modules_as_functions: Any = False, autograd_inlining: bool = True) -> None:
    """Write a model's operations on these arguments to `f`, a path or a file."""
    with select_model_mode_for_export(model, training):
        _export.legacy(model, args, f, kwargs=kwargs, verbose=verbose, input_names=input_names, output_names=output_names, opset_version=opset_version,
                       dynamic_axes=dynamic_axes, export_params=export_params, keep_initializers_as_inputs=keep_initializers_as_inputs,
                       training=getattr(model, "training", False))
