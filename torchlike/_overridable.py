"""Which functions classes can take over by `__torch_function__`, listed for torch.overrides."""
from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Iterable
from typing import Any

from ._tensor import Tensor

# Functions that no argument of theirs takes over: they make tensors of sizes and numbers, or ask and set what a whole program has.
_MAKERS = """arange as_strided as_tensor asarray bartlett_window blackman_window broadcast_shapes can_cast empty empty_permuted empty_strided eye fill from_file
from_numpy frombuffer full hamming_window hann_window kaiser_window linspace logspace normal ones promote_types rand rand_like randint randint_like randn
randn_like randperm range result_type scalar_tensor sparse_bsc_tensor sparse_bsr_tensor sparse_compressed_tensor sparse_coo_tensor sparse_csc_tensor
sparse_csr_tensor tensor tril_indices triu_indices vander zeros""".split()
_SETTINGS = """are_deterministic_algorithms_enabled clear_autocast_cache compile cond enable_grad fork get_autocast_cpu_dtype get_autocast_dtype
get_autocast_gpu_dtype get_default_device get_default_dtype get_deterministic_debug_mode get_device_module get_float32_matmul_precision
get_num_interop_threads get_num_threads get_rng_state inference_mode initial_seed is_anomaly_check_nan_enabled is_anomaly_enabled
is_autocast_cache_enabled is_autocast_cpu_enabled is_autocast_enabled is_deterministic_algorithms_warn_only_enabled is_grad_enabled
is_inference_mode_enabled is_storage is_tensor is_vulkan_available is_warn_always_enabled load manual_seed no_grad save seed set_autocast_cache_enabled
set_autocast_cpu_dtype set_autocast_cpu_enabled set_autocast_dtype set_autocast_enabled set_autocast_gpu_dtype set_default_device set_default_dtype
set_default_tensor_type set_deterministic_debug_mode set_float32_matmul_precision set_flush_denormal set_grad_enabled set_num_interop_threads
set_num_threads set_printoptions set_rng_state set_warn_always typename use_deterministic_algorithms vmap wait""".split()
IGNORED = {
    "": (*_MAKERS, *_SETTINGS, "eig", "from_dlpack", "lstsq", "matrix_rank", "solve", "symeig", "unique_dim"),
    "nn.functional": """grouped_mm handle_torch_function hardsigmoid hardswish has_torch_function has_torch_function_unary has_torch_function_variadic
                        scaled_grouped_mm scaled_mm sigmoid tanh upsample upsample_bilinear upsample_nearest""".split(),
    "nn.init": """calculate_gain constant dirac eye kaiming_normal kaiming_uniform normal orthogonal sparse uniform xavier_normal
                  xavier_uniform""".split(),
    "fft": ("fftfreq", "rfftfreq"),
}
_IGNORED_METHODS = """__dir__ __hash__ __iter__ eig lstsq new new_empty new_empty_strided new_full new_ones new_tensor new_zeros solve stride symeig
to_sparse_csc to_sparse_csr unflatten""".split()


def ignored(module_of: Callable[[str], Any]) -> set[Callable]:
    """The public functions and methods that nobody takes over; `module_of` finds torch's modules by their names."""
    found = {vars(module)[name] for where, names in IGNORED.items() for module in [module_of(where)] for name in names if name in vars(module)}
    return found | {vars(Tensor)[name] for name in _IGNORED_METHODS if name in vars(Tensor)}


def listed(scopes: dict[Any, Iterable[tuple[str, Any]]], left_out: set[Callable]) -> dict[Any, list[Callable]]:
    """By the scope in which they are found, functions and methods that are not left out; by a property, its getter."""
    found: dict[Any, list[Callable]] = {}
    for scope, members in scopes.items():
        own: list[Callable] = []
        for name, x in members:
            if isinstance(x, property):
                found[x] = [x.__get__]
            elif isinstance(x, types.FunctionType) and x not in left_out and (scope is Tensor or not (name.startswith("_") or name.endswith("_"))):
                own.append(x)
        if own:
            found[scope] = own
    return found


def stand_in(function: Callable) -> Callable:
    """A function that takes the same arguments and returns -1."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        def run(*args: Any, **kwargs: Any) -> int:
            return -1
        return run

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> int:
        signature.bind(*args, **kwargs)
        return -1
    del run.__wrapped__
    plain = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    run.__signature__ = signature = signature.replace(parameters=plain, return_annotation=signature.empty)
    return run
