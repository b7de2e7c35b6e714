"""Files of the safetensors format: the length of a JSON header, the header, and the tensors' bytes one behind the other."""
from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np

from ..._core import dtype as dt
from ..._tensor import Tensor, as_tensor_value
from ..collectives import read

_CODES = {"F64": dt.float64, "F32": dt.float32, "F16": dt.float16, "BF16": dt.bfloat16, "I64": dt.int64, "I32": dt.int32, "I16": dt.int16, "I8": dt.int8,
          "U8": dt.uint8, "BOOL": dt.bool_, "F8_E4M3": dt.float8_e4m3fn, "F8_E5M2": dt.float8_e5m2}
_NAMES = {kind: code for code, kind in _CODES.items()}


def packed(tensors: dict[str, Tensor], metadata: dict[str, str]) -> bytes:
    """The file with these tensors."""
    header: dict[str, Any] = {"__metadata__": metadata}
    parts, begin = [], 0
    for name, t in sorted(tensors.items(), key=lambda item: (-item[1].dtype.itemsize, item[0])):
        part = np.ascontiguousarray(read(t)).tobytes()
        header[name] = {"dtype": _NAMES[t.dtype], "shape": list(t.shape), "data_offsets": [begin, begin + len(part)]}
        begin += len(part)
        parts.append(part)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(parts)


def header_of(path: Path) -> tuple[dict[str, Any], int]:
    """A file's header, and where its data begins."""
    with open(path, "rb") as stream:
        (n,) = struct.unpack("<Q", stream.read(8))
        return json.loads(stream.read(n)), 8 + n


def kind_of(about: dict[str, Any]) -> dt.dtype:
    """The dtype that an entry of a header names."""
    return _CODES[about["dtype"]]


def unpacked(path: Path, name: str) -> Tensor:
    """A tensor of a file."""
    header, start = header_of(path)
    first, end = header[name]["data_offsets"]
    with open(path, "rb") as stream:
        stream.seek(start + first)
        data = stream.read(end - first)
    return as_tensor_value(np.frombuffer(data, kind_of(header[name]).np).reshape(header[name]["shape"]).copy())
