"""The only file that imports a Pallas back end; everything version-dependent about Pallas is decided here.

Written for jax 0.10.2 and 0.11.2. Kernels are in Pallas-Triton style: a body that gets `pid` (program ids) and refs.
"""

import contextlib
import contextvars
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import export
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plt

from pallas_kernels import _dispatch

TRITON_TARGET = "__gpu$xla.gpu.triton"
TPU_TARGET = "tpu_custom_call"
_CUDNN_TARGETS = (
    "__cudnn$fmhaSoftmax",
    "__cudnn$fmhaSoftmaxBackward",
    "__cudnn$fmhaScaleBiasSoftmax",
    "__cudnn$fmhaScaleBiasSoftmaxBackward",
)

_reversed_grid = contextvars.ContextVar("pallas_kernels_reversed_grid", default=False)

ds = pl.ds
cdiv = pl.cdiv


def next_power_of_2(n: int) -> int:
    return 1 << max(0, n - 1).bit_length()


def round_up(n: int, multiple: int) -> int:
    return -(-n // multiple) * multiple


class Block(NamedTuple):
    """How one operand is cut: `shape` (None squeezes a dimension), and the block's index from the program ids."""

    shape: tuple[int | None, ...]
    index: Callable[..., tuple]


@contextlib.contextmanager
def reversed_grid() -> Iterator[None]:
    """Run programs in the opposite order. Results must be bit-identical: a difference means programs race."""
    token = _reversed_grid.set(True)
    try:
        yield
    finally:
        _reversed_grid.reset(token)


def kernel_call(
    body: Callable,
    operands: Sequence[jax.Array],
    *,
    name: str,
    grid: tuple[int, ...],
    in_blocks: Sequence[Block],
    out_blocks: Sequence[Block],
    out_shapes: Sequence[jax.ShapeDtypeStruct],
    num_warps: int,
    num_stages: int,
    interpret: bool,
) -> list[jax.Array]:
    """Launch `body(pid, *in_refs, *out_refs)` on every program of `grid`.

    64-bit types are switched off while the body is traced: with `jax_enable_x64` Python integers would become int64
    and Triton's lowering mixes widths. Operands must be at most 32 bits wide.
    """
    for operand in operands:
        if jnp.dtype(operand.dtype).itemsize > 4:
            raise TypeError(f"{name}: kernels take operands of at most 32 bits, got {operand.dtype}")
    flip = _reversed_grid.get()

    def pid(axis: int):
        index = pl.program_id(axis)
        return grid[axis] - 1 - index if flip else index

    def spec(block: Block):
        def index(*ids):
            return block.index(*(n - 1 - i if flip else i for n, i in zip(grid, ids, strict=True)))

        return pl.BlockSpec(block.shape, index)

    def kernel(*refs):
        body(pid, *refs)

    kernel.__name__ = kernel.__qualname__ = name
    with jax.enable_x64(False):
        return pl.pallas_call(
            kernel,
            grid=grid,
            in_specs=[spec(b) for b in in_blocks],
            out_specs=[spec(b) for b in out_blocks],
            out_shape=list(out_shapes),
            interpret=interpret,
            name=name,
            compiler_params=plt.CompilerParams(num_warps=num_warps, num_stages=num_stages),
        )(*operands)


def at(ref, *index):
    """`ref.at[index]` with every start an int32: interpret mode under `jax_enable_x64` cannot mix them with int64."""

    def narrow(one, size):
        if isinstance(one, slice):
            return pl.ds(jnp.int32(0), size)
        if isinstance(one, pl.Slice):
            return pl.ds(jnp.int32(one.start), one.size)
        return jnp.int32(one)

    return ref.at[tuple(narrow(one, size) for one, size in zip(index, ref.shape, strict=True))]


def load(ref, mask=None, other=None) -> jax.Array:
    return plt.load(ref, mask=mask, other=other)


def store(ref, value, mask=None) -> None:
    plt.store(ref, value, mask=mask)


def dot(a: jax.Array, b: jax.Array, *, contract: tuple[int, int], interpret: bool) -> jax.Array:
    """float32-accumulated product over one dimension of each operand.

    Triton's default for float32 is TF32 (10 bits of mantissa), which interpret mode cannot show; three TF32 products
    recover float32. The CPU does not know that preset, and computes float32 anyway.
    """
    precision = jax.lax.Precision.DEFAULT  # not None, which is the user's jax_default_matmul_precision
    if a.dtype == jnp.float32 and not interpret:
        precision = jax.lax.DotAlgorithmPreset.TF32_TF32_F32_X3
    return jax.lax.dot_general(
        a, b, (((contract[0],), (contract[1],)), ((), ())), precision=precision, preferred_element_type=jnp.float32
    )


@functools.cache
def _abstract_h200():
    device = jax.sharding.AbstractDevice(device_kind="NVIDIA H200", platform="gpu", num_cores=132)
    return jax.sharding.AbstractMesh((), (), abstract_device=device)


def lower_for(platform: str, function: Callable, *args: Any) -> str:
    """StableHLO text of `function(*args)` for `"cuda"` or `"tpu"`, on a machine that has neither.

    Runs Pallas' own lowering (Triton IR, Mosaic), not Triton's compiler: register spills and shared-memory overflow
    show only on a card.
    """
    checks = [export.DisabledSafetyCheck.custom_call(t) for t in (TRITON_TARGET, TPU_TARGET, *_CUDNN_TARGETS)]
    checks.append(export.DisabledSafetyCheck.platform())
    target = _dispatch.H200 if platform == "cuda" else _dispatch.TPU
    mesh = jax.sharding.use_abstract_mesh(_abstract_h200()) if platform == "cuda" else contextlib.nullcontext()
    with _dispatch.assumed_device(target), mesh:
        # A fresh closure: jit would hand back a trace made for another device.
        exported = export.export(jax.jit(lambda *xs: function(*xs)), platforms=[platform], disabled_checks=checks)(
            *args
        )
    return exported.mlir_module()
