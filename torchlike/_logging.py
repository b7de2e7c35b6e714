"""torch._logging: levels of the loggers that PyTorch's parts write to, and of loggers for single kinds of message."""
from __future__ import annotations

import functools
import importlib.util
import logging
from collections.abc import Callable
from typing import Any

_SYMBOLS = ("torch.fx.experimental.symbolic_shapes", "torch.fx.experimental.sym_node", "torch.fx.experimental.recording")
_LOGGERS: dict[str, tuple[str, ...]] = {
    "dynamo": ("torch._dynamo", *_SYMBOLS), "aot": ("torch._functorch.aot_autograd", "torch._functorch._aot_autograd"), "autograd": ("torch.autograd",),
    "dynamic": _SYMBOLS, "inductor": ("torch._inductor", "torch._inductor.cudagraph_trees"),
    "distributed": ("torch.distributed", "torch._dynamo.backends.distributed", "torch.nn.parallel.distributed"),
    "c10d": ("torch.distributed.distributed_c10d", "torch.distributed.rendezvous"),
    "ddp": ("torch.nn.parallel.distributed", "torch._dynamo.backends.distributed"), "fsdp": ("torch.distributed.fsdp", "torch.distributed._composable.fsdp"),
    "dtensor": ("torch.distributed._tensor", "torch.distributed.tensor"), "onnx": ("torch.onnx",), "export": ("torch._dynamo", "torch.export", *_SYMBOLS)}
_ARTIFACTS = frozenset("""
    bytecode aot_graphs aot_joint_graph ddp_graphs graph graph_code graph_code_verbose graph_breaks side_effects graph_sizes guards recompiles
    recompiles_verbose trace_source trace_call trace_bytecode output_code kernel_code schedule perf_hints pre_grad_graphs post_grad_graphs ir_pre_fusion
    ir_post_fusion onnx_diagnostics fusion overlap cudagraphs sym_node compiled_autograd compiled_autograd_verbose cudagraph_static_inputs benchmarking
    autotuning incremental graph_region_expansion inductor_metrics hierarchical_compile compute_dependencies caching""".split())
_LEVELS = (logging.CRITICAL, logging.ERROR, logging.WARNING, logging.INFO, logging.DEBUG, logging.NOTSET)
_handed_out: dict[str, str] = {}  # a logger's name -> its kind of message
_on: set[str] = set()  # kinds of message that are shown
_set_by_module: set[str] = set()


def set_logs(*, all: int | None = None, modules: dict[str, int] | None = None, **chosen: Any) -> None:  # noqa: A002
    """Levels by name (dynamo=logging.INFO, ...), kinds of message that are shown (recompiles=True, ...), and levels of modules' own loggers; what is
    not named goes back to what it was."""
    for name, value in chosen.items():
        if name not in _LOGGERS and name not in _ARTIFACTS:
            raise TypeError(f"set_logs() got an unexpected keyword argument '{name}'")
        if name in _ARTIFACTS and value.__class__ is not bool and value is not None:
            raise ValueError(f"Expected bool to enable artifact {name}, received {value}")
    levels = {"all": all, **{name: value for name, value in chosen.items() if name in _LOGGERS}, **(modules or {})}
    for name in modules or {}:
        if importlib.util.find_spec(name) is None:
            raise ModuleNotFoundError(f"No module named '{name}'")
    for name, level in levels.items():
        if level is not None and (level.__class__ is bool or level not in _LEVELS):
            raise ValueError(f"Unrecognized log level for log {'torch' if name == 'all' else name}: {level}, valid level values are: {','.join(map(str, _LEVELS))}")
    for name in {*_set_by_module, *(name for names in _LOGGERS.values() for name in names)}:
        logging.getLogger(name).setLevel(logging.NOTSET)
    logging.getLogger("torch").setLevel(logging.WARNING if all is None else all)
    for name, level in levels.items():
        if name != "all" and level is not None:
            for logger in _LOGGERS.get(name, (name,)):
                logging.getLogger(logger).setLevel(level)
    _set_by_module.clear()
    _set_by_module.update(modules or ())
    _on.clear()
    _on.update(name for name, value in chosen.items() if name in _ARTIFACTS and value)
    for name, kind in _handed_out.items():
        logging.getLogger(name).setLevel(logging.DEBUG if kind in _on else logging.NOTSET)


def getArtifactLogger(module_qname: str, artifact_name: str) -> logging.Logger:  # noqa: N802
    """A module's logger for one kind of message, which `set_logs` turns on."""
    if artifact_name not in _ARTIFACTS:
        raise ValueError(f"Artifact name: {artifact_name!r} not registered,please call register_artifact({artifact_name!r}) in torch._logging.registrations.")
    logger = logging.getLogger(f"{module_qname}.__{artifact_name}")
    _handed_out[logger.name] = artifact_name
    logger.setLevel(logging.DEBUG if artifact_name in _on else logging.NOTSET)
    return logger


class LazyString:
    """Text of a function's result, which is asked for when somebody shows it."""

    def __init__(self, func: Callable, *args: Any, **kwargs: Any) -> None:
        self.func, self.args, self.kwargs = func, args, kwargs

    def __str__(self) -> str:
        return str(self.func(*self.args, **self.kwargs))


@functools.cache
def warning_once(logger_obj: logging.Logger, *args: Any, **kwargs: Any) -> None:
    """logger_obj.warning, once for the same arguments."""
    logger_obj.warning(*args, **kwargs)


set_logs()
