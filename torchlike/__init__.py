"""torchlike: PyTorch's API on JAX's compiler. `import torchlike as torch`."""
import gc as _gc
import importlib as _importlib
import math as _math
import sys as _sys

_collecting, _before = _gc.isenabled(), len(_gc.get_objects())
_gc.disable()  # what an import makes stays: looking for garbage in it takes a quarter of the time
try:
    from ._core import garbage as _garbage
    from ._core import logs as _logs
    _logs.quieten()
    from . import ops  # noqa: F401  (publishes functions and methods, and loads nearly everything; must come first)
    from . import _alias, _tensor_str, _tracebacks, version
    from . import _compile, accelerator, amp, autograd, backends, cuda, fft, jit, linalg, nn, optim, random, serialization, special, utils  # noqa: F401
finally:
    if _collecting:
        _garbage.set_aside(_before)
        _gc.enable()
from ._alias import install  # noqa: F401
from ._checks import (_check, _check_index, _check_is_size, _check_not_implemented, _check_tensor_all, _check_tensor_all_with, _check_type, _check_value,  # noqa: F401
                      _check_with)
from ._device_module import get_device_module  # noqa: F401
from ._streams import Event, Stream  # noqa: F401
from ._symbolic import SymBool, SymFloat, SymInt, sym_float, sym_fresh_size, sym_int, sym_ite, sym_max, sym_min, sym_not, sym_sqrt, sym_sum  # noqa: F401
from ._core.device import device, set_default_device  # noqa: F401
from ._core.dtype import (  # noqa: F401
    bfloat16,
    can_cast,
    complex32,
    complex64,
    complex128,
    dtype,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float4_e2m1fn_x2,
    float8_e8m0fnu,
    float16,
    float32,
    float64,
    get_default_dtype,
    int1,
    int2,
    int3,
    int4,
    int5,
    int6,
    int7,
    int8,
    int16,
    int32,
    int64,
    promote_types,
    qint8,
    qint32,
    quint2x4,
    quint4x2,
    quint8,
    uint1,
    uint2,
    uint3,
    uint4,
    uint5,
    uint6,
    uint7,
    uint8,
    uint16,
    uint32,
    uint64,
)
from ._core.dtype import bool_ as bool  # noqa: F401
from ._core.errors import AcceleratorError, OutOfMemoryError  # noqa: F401
from ._core.history import explain  # noqa: F401
from ._core.program import immediate  # noqa: F401
from ._deprecated import NAMES as _DEPRECATED
from ._deprecated import asked as _asked
from ._interop import from_jax, jax_function  # noqa: F401
from ._public import FUNCTIONS as _functions
from ._public import called as _called
from ._public import importable as _importable
from ._public import finish_methods as _finish_methods
from ._tensor import Size, Tensor  # noqa: F401
from ._tensor_str import set_printoptions  # noqa: F401
from .backends.precision import get_float32_matmul_precision, set_float32_matmul_precision  # noqa: F401
from .cuda import amp as _cuda_amp  # noqa: F401  (torch.cuda.amp)
from .amp.autocast_mode import (  # noqa: F401
    autocast,
    clear_autocast_cache,
    get_autocast_dtype,
    is_autocast_cache_enabled,
    is_autocast_enabled,
    set_autocast_cache_enabled,
    set_autocast_dtype,
    set_autocast_enabled,
)
from .amp import GradScaler  # noqa: F401
from .amp._older import NAMES as _older_amp
from .autograd.grad_mode import (  # noqa: F401
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from .ops.queries import finfo, iinfo  # noqa: F401
from .ops.random import Generator, default_generator  # noqa: F401
from .ops.memory_formats import channels_last, channels_last_3d, contiguous_format, memory_format, preserve_format  # noqa: F401
from ._compile import compile  # noqa: F401
from .serialization import load, save  # noqa: F401
from .version import __version__  # noqa: F401
from . import _second_names  # noqa: F401

promote_types, can_cast = map(_called, (promote_types, can_cast))
half, float, double, short, int, long = float16, float32, float64, int16, int32, int64
cfloat, cdouble, chalf = complex64, complex128, complex32
inf, nan, pi, e, newaxis = _math.inf, _math.nan, _math.pi, _math.e, None
legacy_contiguous_format = contiguous_format
globals().update(_functions)
globals().update(_older_amp)
_finish_methods()
for _module, _prefix in ((_sys.modules[__name__], ""), (nn.functional, ""), (linalg, "linalg_"), (fft, "fft_"), (special, "special_")):
    _importable(_module, _prefix)

_tracebacks.begin()

# what `from torch import *` takes: no modules, since programs have others of the names `random`, `types`, `utils`
__all__ = [_name for _name, _x in globals().items() if not _name.startswith("_") and not isinstance(_x, type(_sys))
           and _name not in ("explain", "from_jax", "immediate", "install", "jax_function")] + ["vmap"]  # noqa: PLE0604

# attributes of torch that few programs touch
_LAZY = frozenset({
    "_C", "__config__", "_dynamo", "_guards", "_higher_order_ops", "_inductor", "_logging", "_ops", "_subclasses", "_utils", "_vmap_internals", "ao", "compiler", "cpu",
    "distributed", "distributions", "export", "func", "functional", "futures", "fx", "hub", "library", "masked", "monitor", "mps", "mtia", "nested", "onnx", "overrides",
    "profiler", "quantization", "quasirandom", "return_types", "signal", "sparse", "storage", "testing", "types", "xpu",
})


# operators that torch has as functions too
_OPERATORS = frozenset({
    "_convert_indices_from_coo_to_csr", "_convert_indices_from_csr_to_coo", "_log_softmax", "_log_softmax_backward_data",
    "_native_batch_norm_legit_no_training", "_pin_memory", "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_flash_attention", "_scaled_dot_product_flash_attention_for_cpu", "_softmax", "_softmax_backward_data", "_unique2", "convolution",
})


def __getattr__(name: str):
    if name in _LAZY:
        return _importlib.import_module(f"{__name__}.{name}")
    if name in _OPERATORS:
        from ._ops import function_of
        return function_of(getattr(ops.aten, name))
    if name == "vmap":
        from .func import vmap
        return vmap
    if name in ("cond", "while_loop"):
        from . import _higher_order_ops
        return getattr(_higher_order_ops, name)
    if name in ("_nested_compute_contiguous_strides_offsets", "_nested_view_from_buffer"):
        from .nested import _buffers
        return getattr(_buffers, name)
    if name in ("_nested_tensor_from_mask", "_nested_tensor_from_mask_left_aligned"):
        from .nested import _masks
        return getattr(_masks, name)
    if name == "torch":  # as in real PyTorch, whose modules import it
        return _sys.modules[__name__]
    if name == "Future":
        from .futures import Future
        return Future
    if name == "PyTorchFileReader":
        from ._serialization.reader import PyTorchFileReader
        return PyTorchFileReader
    if name == "classes":
        from ._classes import classes
        return classes
    if name == "Tag":
        from ._tags import Tag
        return Tag
    if name == "ScriptModule":
        return jit.ScriptModule
    if name in _DEPRECATED:
        return _asked(name)
    if name.endswith("Type"):
        from . import _C
        if name in _C.SIMPLE_TYPES:
            return getattr(_C, name)
    raise _alias.missing(name, __name__)
