"""The case table inside JAX's transformations: jax.jit, jax.grad and jax.vmap of a call give what the eager call, its backward and a loop give."""
import pytest
from case import call, function_of, inputs, specs
from cases import CASES
from compare import Raised, attempt
from jax_rows import batched, differentiated, found, jitted

import torchlike as torch

# These ask for values, or make as many results as the data says: JAX refuses that on the user's line.
ASK = set("""Tensor.__array__ Tensor.__bool__ Tensor.__complex__ Tensor.__contains__ Tensor.__float__ Tensor.__format__ Tensor.__index__ Tensor.__int__ Tensor.apply_
Tensor.cauchy_ Tensor.exponential_ Tensor.geometric_ Tensor.item Tensor.log_normal_ Tensor.masked_scatter_ Tensor.numpy Tensor.numpy-grad Tensor.share_memory_
Tensor.storage Tensor.tolist Tensor.unique nn.functional.fractional_max_pool2d torch.allclose torch.argwhere torch.bincount torch.equal torch.from_dlpack
torch.from_numpy torch.frombuffer torch.is_nonzero torch.masked_scatter torch.masked_select torch.nonzero torch.segment_reduce-max
torch.segment_reduce-mean torch.segment_reduce-min torch.segment_reduce-prod torch.segment_reduce-sum torch.unique torch.unique_consecutive""".split())
# JAX differentiates neither callbacks nor, under its setting of 32 bits, complex128.
UNDERIVABLE = {"torch.linalg.ldl_solve", "Tensor.cdouble"}


@pytest.mark.parametrize("row", [pytest.param(row, id=row.id) for row in CASES if row.samples and next(specs(row.samples[0]), None)])
def test_row(row):
    sample = row.samples[0]
    if isinstance(attempt(call, torch, function_of(torch, row), sample, inputs(torch, row, sample)), Raised):
        return  # a dtype that PyTorch refuses, too
    if row.id in ASK:
        assert list(found(jitted, row, sample, 3))[0].endswith("Error")
        return
    faults = ["none"] if row.id in UNDERIVABLE else list(found(differentiated, row, sample, 3))
    if faults == ["none"]:
        faults = list(found(jitted, row, sample, 3))
    faults += [d for d in found(batched, row, sample, 3) if d != "none"]
    assert not faults, "\n" + "\n".join(map(str, faults))
