"""ONNXProgram: what an export gives."""
from __future__ import annotations

import os
import tempfile
import textwrap
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .._tensor import Tensor
from ..utils._pytree import tree_leaves
from .errors import OnnxExporterWarning

LARGE = 1536 * 1024 * 1024  # bytes of initializers from which they go into a file of their own
_SMALL = 256  # bytes up to which one stays in the model's file


class ONNXProgram:
    """A model in ONNX: to be saved, looked at, or called with tensors (ONNX Runtime runs it)."""

    __module__ = "torch.onnx"

    def __init__(self, model_proto: Any, exported_program: Any = None) -> None:
        self._proto, self.exported_program = model_proto, exported_program
        self._model: Any = None
        self._inference_session: Any = None
        self._folder: tempfile.TemporaryDirectory | None = None

    def __repr__(self) -> str:
        import onnx
        shown = self._without_initializers()
        return f"ONNXProgram(\n    model=\n{textwrap.indent(onnx.printer.to_text(shown), ' ' * 8)}\n)\n"

    @property
    def model(self) -> Any:
        """The model as an `onnx_ir.Model`; what is changed there is changed here."""
        if self._model is None:
            import onnx_ir
            self._model = onnx_ir.serde.deserialize_model(self._proto)
        return self._model

    @property
    def model_proto(self) -> Any:
        """The model as an `onnx.ModelProto`."""
        if self._model is not None:
            import onnx_ir
            return onnx_ir.serde.serialize_model(self._model)
        return self._copy()

    def _copy(self) -> Any:
        import onnx
        made = onnx.ModelProto()
        made.CopyFrom(self._proto)
        return made

    def _without_initializers(self) -> Any:
        made = self.model_proto
        del made.graph.initializer[:]
        return made

    # -- running -------------------------------------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Sequence[Tensor]:
        """Run the model in ONNX Runtime."""
        if self._inference_session is None:
            self.initialize_inference_session()
        return _tensors(self._inference_session.run(None, self._fed(args, kwargs)))

    def call_reference(self, *args: Any, **kwargs: Any) -> Sequence[Tensor]:
        """Run the model in `onnx.reference`."""
        import onnx.reference
        return _tensors(onnx.reference.ReferenceEvaluator(self.model_proto).run(None, self._fed(args, kwargs)))

    def compute_values(self, value_names: Sequence[str], args: Sequence = (), kwargs: Mapping | None = None) -> Sequence[Tensor]:
        """The values of these names, which may be any in the graph."""
        proto = self.model_proto
        known = {v.name: v for v in [*proto.graph.value_info, *proto.graph.output, *proto.graph.input]}
        for name in value_names:
            if name not in known:
                raise ValueError(f"Value '{name}' not found in the model. Please provide a valid value name.")
        del proto.graph.output[:]
        proto.graph.output.extend([known[name] for name in value_names])
        return ONNXProgram(proto)(*args, **(kwargs or {}))

    def _fed(self, args: Sequence, kwargs: Mapping) -> dict[str, np.ndarray]:
        names = [v.name for v in self._proto.graph.input]
        given = [x for x in tree_leaves((args, dict(kwargs))) if x is not None]
        return {name: _array(x) for name, x in zip(names, given)}

    def initialize_inference_session(self, initializer: Callable[[Any], Any] | None = None) -> None:
        """Make the session that calls run in: `initializer` gets the model's bytes, or the path of a large one."""
        model: Any
        if _bytes(self._proto) > LARGE:
            self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
            model = os.path.join(self._folder.name, "model.onnx")
            self.save(model, external_data=True)
        else:
            model = self.model_proto.SerializeToString()
        self._inference_session = (initializer or _session)(model)

    def release(self) -> None:
        """Let go of the session."""
        self._inference_session = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    # -- saving and changing ----------------------------------------------------------------------------------------------------------

    def save(self, destination: str | os.PathLike, *, include_initializers: bool = True, keep_initializers_as_inputs: bool = False,
             external_data: bool | None = None) -> None:
        """Write the model to a file, its weights into a second one beside it (`.data`) where they are large or `external_data` asks for that."""
        import onnx
        proto = self.model_proto
        if keep_initializers_as_inputs:
            proto.graph.input.extend(onnx.helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in proto.graph.initializer)
        if not include_initializers:
            del proto.graph.initializer[:]
        if not external_data and _bytes(proto) <= LARGE:
            onnx.save_model(proto, os.fspath(destination) if isinstance(destination, (str, os.PathLike)) else destination)
            return
        if not isinstance(destination, (str, os.PathLike)):
            raise TypeError("a model with external data is saved to a path")
        path = os.fspath(destination)
        data = f"{os.path.basename(path)}.data"
        beside = os.path.join(os.path.dirname(path), data)
        if os.path.exists(beside):
            os.remove(beside)  # onnx would append to it
        onnx.save_model(proto, path, save_as_external_data=True, all_tensors_to_one_file=True, location=data, size_threshold=_SMALL)

    def apply_weights(self, state_dict: Mapping[str, Tensor]) -> None:
        """Other values for the weights of these names."""
        from onnx import numpy_helper
        proto = self.model_proto
        places = {t.name: t for t in proto.graph.initializer}
        for name, value in state_dict.items():
            if name in places:
                places[name].CopyFrom(numpy_helper.from_array(_array(value), name))
            else:
                warnings.warn(f"Weight '{name}' not found in the model. Skipped applying.", OnnxExporterWarning, stacklevel=2)
        self._proto, self._model = proto, None
        self.release()

    def rename_axes(self, rename_mapping: Mapping[Any, str]) -> None:
        """Other names for dynamic dimensions, by their names."""
        names = {getattr(old, "value", old): new for old, new in rename_mapping.items()}
        proto = self.model_proto
        for info in [*proto.graph.input, *proto.graph.output, *proto.graph.value_info]:
            for d in info.type.tensor_type.shape.dim:
                if d.dim_param in names:
                    d.dim_param = names[d.dim_param]
        self._proto, self._model = proto, None

    def optimize(self) -> None:
        """Simplify the graph, by onnxscript's optimizer."""
        import onnxscript.optimizer
        self._model = onnxscript.optimizer.optimize(self.model) or self._model
        self.release()


def _bytes(proto: Any) -> int:
    return sum(len(t.raw_data) for t in proto.graph.initializer)


def _array(x: Any) -> np.ndarray:
    return x.numpy(force=True) if isinstance(x, Tensor) else np.asarray(x, np.float32 if isinstance(x, float) else None)


def _tensors(arrays: Sequence) -> tuple[Tensor, ...]:
    from .. import from_numpy
    return tuple([from_numpy(np.array(a)) for a in arrays])


def _session(model: Any) -> Any:
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    providers = [p for p in ("CUDAExecutionProvider", "CPUExecutionProvider") if p in onnxruntime.get_available_providers()]
    return onnxruntime.InferenceSession(model, providers=providers, sess_options=options)
