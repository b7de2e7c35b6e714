"""torch.utils._dtype_abbrs: short names of dtypes, `f32`, which logs of tensors show."""
from __future__ import annotations

import re

from .._core import dtype as dt


def _short(name: str) -> str:
    """`float8_e4m3fn` as f8e4m3fn, `complex64` as c64."""
    if name == "bool":
        return "b8"
    letters, bits, rest = re.fullmatch(r"([a-z]+)(\d+)_?(.*)", name).groups()
    return {"float": "f", "bfloat": "bf", "complex": "c", "int": "i", "uint": "u", "bits": "b"}.get(letters, letters) + bits + rest


dtype_abbrs = {d: _short(d.name) for d in vars(dt).values() if isinstance(d, dt.dtype)}
