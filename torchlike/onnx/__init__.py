"""`torch.onnx`: models as ONNX files.

A model runs on example inputs while the engine's operations are seen as they are recorded (`_capture`), several times where dimensions
are dynamic (`_examples/dynamic`, `sizes`); `_translator` goes through the runs side by side and makes ONNX nodes of them by the tables in
`_translate`, which `_graph` collects and `_proto` writes. The `onnx` package is loaded when a model is exported.
"""
from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from .._tensor import Tensor
from ..version import __version__
from . import errors, symbolic_helper, symbolic_opset11, utils  # noqa: F401
from ._program import ONNXProgram
from ._proto import PRODUCER
from ._symbolic import (  # noqa: F401
    OperatorExportTypes,
    TensorProtoDataType,
    TrainingMode,
    register_custom_op_symbolic,
    unregister_custom_op_symbolic,
)
from .errors import OnnxExporterError
from .utils import is_in_onnx_export, select_model_mode_for_export  # noqa: F401

__all__ = ["errors", "export", "is_in_onnx_export", "OnnxExporterError", "ONNXProgram"]

producer_name = PRODUCER
producer_version = __version__.partition("+")[0]
_LEGACY = ("You are using the legacy TorchScript-based ONNX export. Starting in PyTorch 2.9, the new torch.export-based ONNX exporter has become the default. "
           "Learn more about the new export logic: https://docs.pytorch.org/docs/stable/onnx_export.html. For exporting control flow: "
           "https://pytorch.org/tutorials/beginner/onnx/export_control_flow_model_to_onnx_tutorial.html")


def export(model: Any, args: tuple[Any, ...] = (), f: str | os.PathLike | None = None, *, kwargs: dict[str, Any] | None = None, verbose: bool | None = None,
           input_names: Sequence[str] | None = None, output_names: Sequence[str] | None = None, opset_version: int | None = None, dynamo: bool = True,
           external_data: bool = True, dynamic_shapes: dict[str, Any] | tuple[Any, ...] | list[Any] | None = None,
           custom_translation_table: dict[Callable, Callable] | None = None, report: bool = False, optimize: bool = True, verify: bool = False,
           profile: bool = False, dump_exported_program: bool = False, artifacts_dir: str | os.PathLike = ".", export_params: bool = True,
           keep_initializers_as_inputs: bool = False, dynamic_axes: Mapping[str, Mapping[int, str]] | Mapping[str, Sequence[int]] | None = None,
           training: TrainingMode = TrainingMode.EVAL, operator_export_type: OperatorExportTypes = OperatorExportTypes.ONNX,
           do_constant_folding: bool = True, custom_opsets: Mapping[str, int] | None = None,
           export_modules_as_functions: bool | Collection[type] = False, autograd_inlining: bool = True) -> ONNXProgram | None:
    """A model in ONNX, written to `f` if that is given: what it does with the tensors in `args` and `kwargs`; anything else there is a constant.

    dynamic_shapes   which dimensions may be of other sizes, by argument: `{"x": {0: "batch"}}`, a name, a torch.export.Dim or Dim.DYNAMIC
    dynamic_axes     the same by the inputs' names
    input_names, output_names   the graph's, in their order
    external_data    put weights into a file beside `f`
    dynamo           False: the older exporter's defaults and answers. Nothing is returned, and data that the model looks at are constants
    verify           warn where ONNX Runtime's results differ from the model's
    """
    args = (args,) if isinstance(args, Tensor) else args
    if dynamo is True:
        if custom_translation_table:
            raise OnnxExporterError("custom_translation_table takes onnxscript functions, which torchlike does not translate to. Register a function that builds "
                                    "nodes with torch.onnx.register_custom_op_symbolic.")
        asked = [name for name, on in (("report", report), ("profile", profile), ("dump_exported_program", dump_exported_program)) if on]
        if asked:
            warnings.warn(f"torch.onnx.export writes no reports here: {', '.join(asked)} has no effect", UserWarning, stacklevel=2)
        from . import _export
        return _export.dynamo(model, args, f, kwargs=kwargs, verbose=verbose, input_names=input_names, output_names=output_names,
                              opset_version=opset_version, dynamic_axes=dynamic_axes, dynamic_shapes=dynamic_shapes, export_params=export_params,
                              keep_initializers_as_inputs=keep_initializers_as_inputs, external_data=external_data, optimize=optimize, verify=verify)
    warnings.warn(_LEGACY, DeprecationWarning, stacklevel=2)
    if dynamic_shapes:
        raise ValueError("The exporter only supports dynamic shapes through parameter dynamic_axes when dynamo=False.")
    utils.export(model, args, f, kwargs=kwargs, export_params=export_params, verbose=verbose is True, input_names=input_names, output_names=output_names,
                 opset_version=opset_version, dynamic_axes=dynamic_axes, keep_initializers_as_inputs=keep_initializers_as_inputs, training=training,
                 operator_export_type=operator_export_type, do_constant_folding=do_constant_folding, custom_opsets=custom_opsets,
                 export_modules_as_functions=export_modules_as_functions, autograd_inlining=autograd_inlining)
    return None
