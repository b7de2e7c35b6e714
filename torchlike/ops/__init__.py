"""The operations, one file per family. Importing a family publishes its functions and methods."""
from typing import Any as _Any

from . import (  # noqa: F401
    autograd_methods,
    basic,
    bit_views,
    bounds,
    creation,
    diagonals,
    discrete_samples,
    einsum,
    fake_quantization,
    foreach,
    from_data,
    gamma_samples,
    gathering,
    histograms,
    identity,
    index_slices,
    indexing,
    integer_maths,
    integer_products,
    joining,
    layouts,
    linalg_exponential,
    linalg_factor,
    linalg_householder,
    linalg_norms,
    linalg_products,
    linalg_solve,
    linalg_spectral,
    log_sums,
    loss_scale,
    masks,
    matmul,
    memory_formats,
    new,
    norms,
    objects,
    pointwise,
    quantized_names,
    queries,
    random,
    ranges,
    reductions,
    removed,
    rnn,
    scans,
    segments,
    sets,
    shape_views,
    slicing,
    softmax,
    sorting,
    sparse_names,
    special,
    storages,
    strided_views,
    switches,
    tensor_types,
    to_python,
    unary,
    view_copies,
    windows,
)


def __getattr__(name: str) -> _Any:
    """torch.ops.<namespace>: PyTorch's own operators, and those that a program has defined; any other name is one that has none yet.

    Programs ask a namespace whether a library's operators are there (`hasattr(torch.ops.pyg, "index_sort")`).
    """
    if name == "aten":
        from .. import _ops
        return _ops.aten
    if name == "prim":
        from .._dispatch.questions import prim
        return prim
    if name == "quantized":
        from .._quantized.operators import quantized
        return quantized
    if name == "torchlike":
        from .. import _leaves
        return _leaves.own
    if name == "profiler":
        from .. import _profiler_ops
        return _profiler_ops.profiler
    if name == "load_library":
        from ..library import load_library
        return load_library
    if name == "loaded_libraries":
        from .._ops import loaded_libraries
        return loaded_libraries
    from importlib.util import find_spec
    if name.startswith("__") or find_spec(f"{__name__}.{name}") is not None:  # `from torchlike.ops import sparse_products` asks here first
        from .. import _alias
        raise _alias.missing(name, __name__)
    if name in ("_c10d_functional", "_c10d_functional_autograd", "c10d_functional"):
        from ..distributed import _functional_operators  # noqa: F401  (defines them)
    if name == "quantized_decomposed":
        from ..ao.quantization.fx import _decomposed  # noqa: F401
    if name == "c10d":
        from ..distributed import _c10d_operators  # noqa: F401
    from .._custom_operator import own_namespace
    found = globals()[name] = own_namespace(name)  # models ask for theirs at each call
    return found
