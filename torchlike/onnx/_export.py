"""An export from its arguments to an ONNXProgram."""
from __future__ import annotations

import io
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .._core.value import Value
from .._examples import dynamic as _dynamic
from .._examples.example import Example, other, resized
from .._examples.sizes import Dyn, dyn
from .._examples.watch import Unfollowed
from .._tensor import Tensor
from ..nn import Module
from ..utils._pytree import tree_leaves
from . import _optimize
from ._capture import Run, capture
from ._errors import ConversionError, TorchExportError
from ._graph import Graph
from ._older import LEAST
from ._program import ONNXProgram
from ._proto import model_proto
from ._translate import WHOLE
from ._translator import Mismatch, Translator
from .errors import OnnxExporterError, UnsupportedOperatorError

DEFAULT_OPSET = 20


class Options:
    """What an export shall be like. `legacy`: as the exporter before torch.export did it."""

    def __init__(self, opset: int, legacy: bool, training: bool, fused: bool, input_names: Sequence[str], output_names: Sequence[str]) -> None:
        self.opset, self.legacy, self.training, self.fused = opset, legacy, training, fused
        self.input_names, self.output_names = list(input_names), list(output_names)


def build(example: Example, labels: _dynamic.Labels, options: Options, dim_names: dict[str, dict[int, str]]) -> Any:
    """The ModelProto."""
    input_names = [*options.input_names[:len(example.names)], *example.names[len(options.input_names):]]
    errors: list[Exception] = []
    for runs, symbols in _tries(example, labels, options, errors):
        try:
            g = _graph(example, runs, symbols, input_names, options)
        except (Mismatch, ConversionError) as e:
            errors.append(e)
            continue
        except Unfollowed as e:
            errors.append(ConversionError(str(e)))
            continue
        g.dim_names = dim_names
        return model_proto(g, 0 if options.legacy else 10)
    raise errors[0]


def _tries(example: Example, labels: _dynamic.Labels, options: Options, errors: list) -> Iterator[tuple[list[Run], dict[str, Dyn]]]:
    """Runs of the model that may show what depends on what."""
    if not any(labels):
        first = _run(example, example.tensors, options)
        if not first.counts_data:
            yield [first], {}
        else:
            yield [first, *[_run(example, [other(t, k) for t in example.tensors], options) for k in (1, 2)]], {}
        return
    for together in (False, True):
        sizes = _dynamic.Sizes(example.tensors, labels, together)
        for attempt in sizes.attempts():
            try:
                runs = [_run(example, [resized(t, s) for t, s in zip(example.tensors, sizes.shapes(example.tensors, at))], options) for at in attempt]
            except OnnxExporterError:
                raise
            except Exception as e:  # whatever the model says to these sizes
                errors.append(e)
                continue
            yield runs, {name: dyn([at[s] for at in attempt]) for s, name in sizes.names.items()}


def _run(example: Example, tensors: list[Tensor], options: Options) -> Run:
    fresh = [Tensor._of(Value(t._current().aval, t._host_array())) for t in tensors]
    state = [*example.model.parameters(), *example.model.buffers()]
    return capture(lambda: example.call(fresh), fresh, state, WHOLE, options.legacy)


def _graph(example: Example, runs: list[Run], symbols: dict[str, Dyn], input_names: list[str], options: Options) -> Graph:
    g = Graph(options.opset, {name: s for name, s in symbols.items() if isinstance(s, Dyn)}, options.training)
    names: dict[int, str] = {}
    for name, t in [*example.model.named_parameters(), *example.model.named_buffers()]:
        names.setdefault(id(t._current()), name)
    g.reserve([*input_names, *options.output_names, *names.values()])
    translator = Translator(g, runs, names)
    translator.add_inputs(input_names)
    g.outputs = translator.outputs()
    _name_outputs(g, options.output_names)
    _optimize.prune(g)
    if options.fused:
        _optimize.fuse(g)
    return g


def _name_outputs(g: Graph, names: list[str]) -> None:
    """Outputs are results of nodes, each under a name of its own."""
    taken: set[int] = set()
    for i, v in enumerate(g.outputs):
        name = names[i] if i < len(names) else None
        if v.node is None or id(v) in taken:
            copy = g.op("Identity", v)
            copy.shape, copy.dtype = v.shape, v.dtype
            copy.name = name or g.fresh(v.name if v.node is not None else "identity")
            g.outputs[i] = copy
        elif name is not None:
            v.name = name
        taken.add(id(g.outputs[i]))


# -- the two ways into it --------------------------------------------------------------------------------------------------------


def need_onnx(error: type[Exception]) -> None:
    """The package that writes files."""
    try:
        import onnx  # noqa: F401
    except ModuleNotFoundError as e:
        raise error("Module onnx is not installed! `pip install onnx` to export models.") from e


def arguments(model: Any, args: Any, kwargs: Mapping | None) -> Example:
    """A model and its arguments; a dict that ends the positional ones has keyword arguments."""
    args = (args,) if isinstance(args, Tensor) else tuple(args)
    if not kwargs and args and isinstance(args[-1], dict):
        *args, kwargs = args
    if not isinstance(model, Module):
        raise TorchExportError(f"Failed to export the model: expected an instance of `torch.nn.Module`, got {type(model)}.")
    return Example(getattr(model, "_orig_mod", model), tuple(args), dict(kwargs or {}))


def dynamo(model: Any, args: Any, f: Any, *, kwargs: Mapping | None, verbose: bool | None, input_names: Sequence[str] | None,
           output_names: Sequence[str] | None, opset_version: int | None, dynamic_axes: Any, dynamic_shapes: Any, export_params: bool,
           keep_initializers_as_inputs: bool, external_data: bool, optimize: bool, verify: bool) -> ONNXProgram:
    """torch.onnx.export(dynamo=True)."""
    need_onnx(ModuleNotFoundError)
    if isinstance(model, Module) and model.training:
        warnings.warn("Exporting a model while it is in training mode. Please ensure that this is intended, as it may lead to different behavior during "
                      "inference. Calling model.eval() before export is recommended.", UserWarning, stacklevel=3)
    example = arguments(model, args, kwargs)
    labels: _dynamic.Labels = [{} for _ in example.names]
    if dynamic_shapes is not None:
        labels = _dynamic.from_shapes(example.named, dynamic_shapes)
    elif dynamic_axes is not None:
        warnings.warn("# 'dynamic_axes' is not recommended when dynamo=True, and may lead to 'torch._dynamo.exc.UserError: Constraints violated.' Supply the "
                      "'dynamic_shapes' argument instead if export is unsuccessful.", UserWarning, stacklevel=3)
        names = [*(input_names or ())][:len(example.names)]
        names += example.names[len(names):]
        if any(key not in {*names, *(output_names or ())} for key in dynamic_axes):
            raise RuntimeError("# Failed to convert 'dynamic_axes' to 'dynamic_shapes'. Please provide 'dynamic_shapes' directly. Refer to the documentation "
                               "for 'torch.export.export' for more information on dynamic shapes.")
        labels = _dynamic.from_axes(names, dynamic_axes)
    options = Options(opset_version or DEFAULT_OPSET, False, example.model.training, optimize, input_names or (), output_names or ())
    say = (lambda *_: None) if verbose is False else lambda text: print("[torch.onnx]", text)
    first, *rest = repr(model).split("\n")
    step = f"Run `{first}{'[...]' if rest else ''}` on the example and translate it into ONNX..."
    say(step)
    try:
        made = ONNXProgram(build(example, labels, options, {}))
    except UnsupportedOperatorError as e:
        raise ConversionError(f"Failed to convert the exported program to an ONNX model. {e}") from e
    except OnnxExporterError:
        say(f"{step} ❌")
        raise
    except Exception as e:
        say(f"{step} ❌")
        raise TorchExportError(f"Failed to export the model with torch.export: {type(e).__name__}: {e}") from e
    say(f"{step} ✅")
    if verify:
        _verify(made, example)
    if isinstance(f, io.BytesIO):
        warnings.warn("Saving ONNX model to a BytesIO object is deprecated. Please use a file path instead.", DeprecationWarning, stacklevel=3)
        made.save(f)
    elif f is not None:
        made.save(f, include_initializers=export_params, keep_initializers_as_inputs=keep_initializers_as_inputs, external_data=external_data)
    return made


def _verify(made: ONNXProgram, example: Example) -> None:
    """Warn where ONNX Runtime's results are not the model's."""
    from .. import allclose, no_grad
    with no_grad():
        wanted = [x for x in tree_leaves(example.call(example.tensors)) if isinstance(x, Tensor)]
    for x, y, v in zip(wanted, made(*example.tensors), made._proto.graph.output):
        if not allclose(x.double(), y.double(), rtol=1e-4, atol=1e-5, equal_nan=True):
            warnings.warn(f"Output value mismatch: {v.name} differs by up to {(x.double() - y.double()).abs().max().item():g}", stacklevel=4)


def legacy(model: Any, args: Any, f: Any, *, kwargs: Mapping | None, verbose: bool, input_names: Sequence[str] | None, output_names: Sequence[str] | None,
           opset_version: int | None, dynamic_axes: Any, export_params: bool, keep_initializers_as_inputs: bool | None, training: bool) -> None:
    """torch.onnx.export(dynamo=False). The model is in the mode that it shall be exported in."""
    need_onnx(OnnxExporterError)
    example = arguments(model, args, kwargs)
    opset = DEFAULT_OPSET if opset_version is None else opset_version
    if not LEAST <= opset <= 23:
        raise ValueError(f"Unsupported ONNX opset version: {opset}")
    names = [*(input_names or ())]
    if len(names) > len(example.names):
        raise RuntimeError(f"number of input names provided ({len(names)}) exceeded number of inputs ({len(example.names)})")
    names += example.names[len(names):]
    axes = dynamic_axes or {}
    for key in axes:
        if key not in {*names, *(output_names or ())}:
            warnings.warn(f"Provided key {key} for dynamic axes is not a valid input/output name", stacklevel=3)
    given = {name: _axis_names(name, axes[name]) for name in axes}
    labels = _dynamic.from_axes(names, given)
    options = Options(opset, True, training, not training, input_names or (), output_names or ())
    proto = build(example, labels, options, given)
    if verbose:
        import onnx
        print(onnx.printer.to_text(proto))
    made = ONNXProgram(proto)
    made.save(f if isinstance(f, (str, os.PathLike)) else _Writer(f), include_initializers=export_params,
              keep_initializers_as_inputs=bool(keep_initializers_as_inputs) or not export_params)


def _axis_names(name: str, axes: Any) -> dict[int, str]:
    """A dimension without a name is called after its input: `x_dynamic_axes_1`."""
    return dict(axes) if isinstance(axes, Mapping) else {d: f"{name}_dynamic_axes_{i + 1}" for i, d in enumerate(axes)}


class _Writer:
    """A file that somebody opened."""

    def __init__(self, file: Any) -> None:
        self.write = file.write


