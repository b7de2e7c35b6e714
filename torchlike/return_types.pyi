"""Written by `python scripts/stubs.py`."""
from typing import NamedTuple
from torchlike._tensor import Tensor

class _lu_with_info(NamedTuple):
    LU: Tensor
    pivots: Tensor
    info: Tensor
class aminmax(NamedTuple):
    min: Tensor
    max: Tensor
class aminmax_out(aminmax): ...
class cummax(NamedTuple):
    values: Tensor
    indices: Tensor
class cummax_out(cummax): ...
class cummin(NamedTuple):
    values: Tensor
    indices: Tensor
class cummin_out(cummin): ...
class frexp(NamedTuple):
    mantissa: Tensor
    exponent: Tensor
class frexp_out(frexp): ...
class geqrf(NamedTuple):
    a: Tensor
    tau: Tensor
class geqrf_out(geqrf): ...
class histogram(NamedTuple):
    hist: Tensor
    bin_edges: Tensor
class histogram_out(histogram): ...
class histogramdd(NamedTuple):
    hist: Tensor
    bin_edges: Tensor
class kthvalue(NamedTuple):
    values: Tensor
    indices: Tensor
class kthvalue_out(kthvalue): ...
class linalg_cholesky_ex(NamedTuple):
    L: Tensor
    info: Tensor
class linalg_cholesky_ex_out(linalg_cholesky_ex): ...
class linalg_eig(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor
class linalg_eig_out(linalg_eig): ...
class linalg_eigh(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor
class linalg_eigh_out(linalg_eigh): ...
class linalg_inv_ex(NamedTuple):
    inverse: Tensor
    info: Tensor
class linalg_inv_ex_out(linalg_inv_ex): ...
class linalg_ldl_factor(NamedTuple):
    LD: Tensor
    pivots: Tensor
class linalg_ldl_factor_ex(NamedTuple):
    LD: Tensor
    pivots: Tensor
    info: Tensor
class linalg_ldl_factor_ex_out(linalg_ldl_factor_ex): ...
class linalg_ldl_factor_out(linalg_ldl_factor): ...
class linalg_lstsq(NamedTuple):
    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor
class linalg_lstsq_out(linalg_lstsq): ...
class linalg_lu(NamedTuple):
    P: Tensor
    L: Tensor
    U: Tensor
class linalg_lu_factor(NamedTuple):
    LU: Tensor
    pivots: Tensor
class linalg_lu_factor_ex(NamedTuple):
    LU: Tensor
    pivots: Tensor
    info: Tensor
class linalg_lu_factor_ex_out(linalg_lu_factor_ex): ...
class linalg_lu_factor_out(linalg_lu_factor): ...
class linalg_lu_out(linalg_lu): ...
class linalg_qr(NamedTuple):
    Q: Tensor
    R: Tensor
class linalg_qr_out(linalg_qr): ...
class linalg_slogdet(NamedTuple):
    sign: Tensor
    logabsdet: Tensor
class linalg_slogdet_out(linalg_slogdet): ...
class linalg_solve_ex(NamedTuple):
    result: Tensor
    info: Tensor
class linalg_solve_ex_out(linalg_solve_ex): ...
class linalg_svd(NamedTuple):
    U: Tensor
    S: Tensor
    Vh: Tensor
class linalg_svd_out(linalg_svd): ...
class lu_unpack(NamedTuple):
    P: Tensor
    L: Tensor
    U: Tensor
class lu_unpack_out(lu_unpack): ...
class max(NamedTuple):
    values: Tensor
    indices: Tensor
class max_out(max): ...
class median(NamedTuple):
    values: Tensor
    indices: Tensor
class median_out(median): ...
class min(NamedTuple):
    values: Tensor
    indices: Tensor
class min_out(min): ...
class mode(NamedTuple):
    values: Tensor
    indices: Tensor
class mode_out(mode): ...
class nanmedian(NamedTuple):
    values: Tensor
    indices: Tensor
class nanmedian_out(nanmedian): ...
class qr(NamedTuple):
    Q: Tensor
    R: Tensor
class qr_out(qr): ...
class slogdet(NamedTuple):
    sign: Tensor
    logabsdet: Tensor
class slogdet_out(slogdet): ...
class sort(NamedTuple):
    values: Tensor
    indices: Tensor
class sort_out(sort): ...
class svd(NamedTuple):
    U: Tensor
    S: Tensor
    V: Tensor
class svd_out(svd): ...
class topk(NamedTuple):
    values: Tensor
    indices: Tensor
class topk_out(topk): ...
class triangular_solve(NamedTuple):
    solution: Tensor
    cloned_coefficient: Tensor
class triangular_solve_out(triangular_solve): ...
