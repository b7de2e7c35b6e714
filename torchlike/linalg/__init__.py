"""torch.linalg."""
from .._public import called as _called
from .._public import with_out as _with_out
from ..ops.linalg_common import LinAlgError  # noqa: F401
from ..ops.linalg_exponential import matrix_exp_ as matrix_exp  # noqa: F401
from ..ops.linalg_factor import (  # noqa: F401
    cholesky_ex,
    lu,
    lu_factor,
    lu_factor_ex,
)
from ..ops.linalg_factor import linalg_cholesky as cholesky  # noqa: F401
from ..ops.linalg_factor import linalg_lu_solve as lu_solve  # noqa: F401
from ..ops.linalg_factor import linalg_qr as qr  # noqa: F401
from ..ops.linalg_householder import householder_product  # noqa: F401
from ..ops.linalg_ldl import ldl_factor, ldl_factor_ex, ldl_solve  # noqa: F401
from ..ops.linalg_norms import cond, matrix_norm  # noqa: F401
from ..ops.linalg_norms import linalg_norm as norm  # noqa: F401
from ..ops.linalg_products import linalg_cross as cross  # noqa: F401
from ..ops.linalg_products import linalg_diagonal as diagonal  # noqa: F401
from ..ops.linalg_products import linalg_multi_dot as multi_dot  # noqa: F401
from ..ops.linalg_products import linalg_vander as vander  # noqa: F401
from ..ops.linalg_products import matrix_power as _matrix_power
from ..ops.linalg_products import tensorinv, tensorsolve, vecdot  # noqa: F401
from ..ops.linalg_solve import inv, inv_ex, solve, solve_ex, solve_triangular  # noqa: F401
from ..ops.linalg_solve import linalg_det as det  # noqa: F401
from ..ops.linalg_solve import linalg_slogdet as slogdet  # noqa: F401
from ..ops.linalg_spectral import eig, eigh, eigvals, eigvalsh, lstsq, matrix_rank, pinv, svdvals  # noqa: F401
from ..ops.linalg_spectral import linalg_svd as svd  # noqa: F401
from ..ops.matmul import matmul as _matmul
from ..ops.norms import vector_norm as _vector_norm
from . import _lobpcg, _lowrank  # noqa: F401  (publish torch.lobpcg, torch.svd_lowrank, torch.pca_lowrank)

matrix_power, matmul, vector_norm = _called(_matrix_power), _with_out(_matmul), _with_out(_vector_norm)
