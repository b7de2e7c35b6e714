"""torch.utils._dtype_abbrs: short names of dtypes, `f32`, which logs of tensors show."""
from __future__ import annotations

from .._core import dtype as dt

dtype_abbrs = {d: d.abbr for d in vars(dt).values() if isinstance(d, dt.dtype)}
