"""Functions that PyTorch has removed: it keeps the names, which raise RuntimeError and say what to call instead."""
from typing import NoReturn

from .._public import public

_GONE = "This function was deprecated since version 1.9 and is now removed. "


def _removed(name: str, advice: str, method: bool = True) -> None:
    def f(*args, **kwargs) -> NoReturn:
        raise RuntimeError(_GONE + advice)
    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"Removed from PyTorch: {advice}"
    public(method=method)(f)


_removed("solve", "Use torch.linalg.solve(A, B), whose arguments are the other way round; torch.lu gives the factorization.")
_removed("eig", "Use torch.linalg.eig or torch.linalg.eigvals, whose results are complex.")
_removed("symeig", "Use torch.linalg.eigh or torch.linalg.eigvalsh, which read the lower triangle by default.")
_removed("lstsq", "Use torch.linalg.lstsq(A, B), whose arguments are the other way round.")
_removed("matrix_rank", "Use torch.linalg.matrix_rank.", method=False)
