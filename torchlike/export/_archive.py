"""`torch.export.save` and `load`: PyTorch's .pt2 archives, a zip of JSON and raw tensors. Nothing in a file is run; names of operators in it
are looked up among those of torch.ops and a few of Python's own for sizes."""
from __future__ import annotations

import io
import json
import os
import pickle
from typing import IO, Any

import numpy as np

from .. import serialization
from .._core.device import device
from .._core.layout import contiguous_strides
from .._serialization.archive import ArchiveReader, ArchiveWriter
from .._tensor import Tensor
from ..nn import Parameter
from ._deserialize import Deserializer
from ._serialize import DTYPES, LAYOUTS, SCHEMA_VERSION, serialized
from .exported_program import ExportedProgram

_WEIGHTS, _CONSTANTS = "data/weights/model_weights_config.json", "data/constants/model_constants_config.json"


def save(ep: ExportedProgram, f: str | os.PathLike | IO[bytes], *, extra_files: dict[str, Any] | None = None, opset_version: dict[str, int] | None = None,
         pickle_protocol: int = 2) -> None:
    """Write a program to a file, with `extra_files`' texts beside it."""
    if not isinstance(ep, ExportedProgram):
        raise TypeError(f"The 'ep' parameter must be an instance of 'ExportedProgram', got '{type(ep).__name__}' instead.")
    model = json.dumps(serialized(ep, opset_version)).encode()
    if isinstance(f, (str, os.PathLike)):
        with open(f, "wb") as stream:
            _write(ep, model, stream, os.path.splitext(os.path.basename(f))[0], extra_files or {}, pickle_protocol)
    else:
        _write(ep, model, f, "archive", extra_files or {}, pickle_protocol)


def _write(ep: ExportedProgram, model: bytes, stream: IO[bytes], name: str, extra: dict[str, Any], protocol: int) -> None:
    writer = ArchiveWriter(stream, name)
    _write_tensors(writer, "data/weights/weight", _WEIGHTS, ep.state_dict)
    _write_tensors(writer, "data/constants/tensor", _CONSTANTS, ep.constants)
    writer.write("models/model.json", model)
    if ep.example_inputs is not None:
        buffer = io.BytesIO()
        serialization.save(ep.example_inputs, buffer, pickle_protocol=protocol)
        writer.write("data/sample_inputs/model.pt", buffer.getvalue())
    for key, text in extra.items():
        writer.write(f"extra/{key}", text.encode() if isinstance(text, str) else bytes(text))
    for record, text in (("archive_format", "pt2"), ("archive_version", "0"), ("byteorder", "little")):
        writer.write(record, text.encode())
    writer.close()


def _write_tensors(writer: ArchiveWriter, prefix: str, config: str, tensors: dict[str, Tensor]) -> None:
    found, paths = {}, {}
    for name, t in tensors.items():
        path = paths.get(id(t))
        if path is None:
            path = paths[id(t)] = f"{prefix}_{len(paths)}"
            array = np.ascontiguousarray(t.detach()._host_array())
            writer.write(path, array.reshape(-1).view(np.uint8))
        meta = {"dtype": DTYPES[t.dtype], "sizes": [{"as_int": n} for n in t.shape], "requires_grad": t.requires_grad,
                "device": {"type": t.device.type, "index": t.device.index}, "strides": [{"as_int": s} for s in contiguous_strides(tuple(t.shape))], "storage_offset": {"as_int": 0},
                "layout": LAYOUTS["torch.strided"]}
        found[name] = {"path_name": path.rpartition("/")[2], "is_param": isinstance(t, Parameter), "use_pickle": False, "tensor_meta": meta}
    writer.write(config, json.dumps({"config": found}).encode())


# -- reading ----------------------------------------------------------------------------------------------------------------------


def load(f: str | os.PathLike | IO[bytes], *, extra_files: dict[str, Any] | None = None, expected_opset_version: dict[str, int] | None = None) -> ExportedProgram:
    """A program from a file that `save`, PyTorch's or this one, wrote; `extra_files`' texts are filled in."""
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as stream:
            return _read(stream, os.fspath(f), extra_files)
    return _read(f, "the file", extra_files)


def _read(stream: IO[bytes], name: str, extra: dict[str, Any] | None) -> ExportedProgram:
    records = ArchiveReader(stream, name)
    if "models/model.json" not in records:
        what = "an archive of an older PyTorch" if "serialized_exported_program.json" in records.names() else "no .pt2 archive of an exported program"
        raise RuntimeError(f"{name} is {what}: it has no models/model.json")
    if "byteorder" in records and records.read("byteorder").strip() != b"little":
        raise RuntimeError(f"{name} holds numbers of another byte order")
    model = _json(records, "models/model.json", name)
    try:
        version = model["schema_version"]
        if version["major"] != SCHEMA_VERSION[0]:
            raise RuntimeError(f"{name} has version {version['major']}.{version['minor']} of the format; torch {model.get('torch_version')} wrote it, and this "
                               f"reads version {SCHEMA_VERSION[0]}")
        state = _read_tensors(records, _WEIGHTS, "data/weights", name)
        constants = _read_tensors(records, _CONSTANTS, "data/constants", name)
        program = Deserializer(model, name).program(state, constants, _examples(records))
    except (KeyError, TypeError, IndexError, AttributeError) as e:
        raise RuntimeError(f"{name} is corrupted: {type(e).__name__}: {e}") from e
    for key in extra or ():
        if f"extra/{key}" in records:
            extra[key] = records.read(f"extra/{key}").decode()
    return program


def _json(records: ArchiveReader, record: str, name: str) -> Any:
    try:
        return json.loads(records.read(record))
    except (ValueError, RecursionError) as e:
        raise RuntimeError(f"{name} is corrupted: {record} is no JSON ({e})") from None


def _read_tensors(records: ArchiveReader, config: str, folder: str, name: str) -> dict[str, Tensor]:
    by_number = {n: d for d, n in DTYPES.items()}
    made: dict[tuple, Tensor] = {}
    found: dict[str, Tensor] = {}
    for key, entry in _json(records, config, name)["config"].items() if config in records else ():
        meta = entry["tensor_meta"]
        if entry["use_pickle"] or meta is None or meta["layout"] != LAYOUTS["torch.strided"] or meta["dtype"] not in by_number:
            raise RuntimeError(f"{name}: {key} is no plain tensor (a custom object, a subclass or another layout), which torchlike does not load")
        dtype = by_number[meta["dtype"]]
        shape, strides = (tuple(n["as_int"] for n in meta[k]) for k in ("sizes", "strides"))
        offset = meta["storage_offset"]["as_int"]
        same = entry["path_name"], shape, strides, offset, meta["dtype"], entry["is_param"]
        if same not in made:
            data = records.read_array(f"{folder}/{entry['path_name']}")
            data = data[:len(data) // dtype.np.itemsize * dtype.np.itemsize].view(dtype.np)
            last = offset + sum((n - 1) * s for n, s in zip(shape, strides))
            if 0 not in shape and not (0 <= offset and min(strides, default=0) >= 0 and last < len(data)):
                raise RuntimeError(f"{name} is corrupted: {entry['path_name']} has {len(data)} elements, and {key} needs {last + 1}")
            array = np.zeros(shape, dtype.np) if 0 in shape else np.lib.stride_tricks.as_strided(data[offset:], shape, [s * dtype.np.itemsize for s in strides])
            t = _tensor(np.ascontiguousarray(array).reshape(shape), dtype, meta["device"])
            made[same] = Parameter(t, meta["requires_grad"]) if entry["is_param"] else t.requires_grad_(meta["requires_grad"])
        found[key] = made[same]
    return found


def _tensor(array: np.ndarray, dtype: Any, where: dict) -> Tensor:
    from ..ops.from_data import place
    t = place(array.copy(), device("cpu"))
    return t if where["type"] == "cpu" else t.to(device(where["type"] if where["index"] is None else f"{where['type']}:{where['index']}"))


def _examples(records: ArchiveReader) -> tuple | None:
    """The arguments that the program was exported with, where they are nothing but tensors and plain values."""
    if "data/sample_inputs/model.pt" not in records:
        return None
    try:
        return serialization.load(io.BytesIO(records.read("data/sample_inputs/model.pt")), weights_only=True)
    except (pickle.UnpicklingError, RuntimeError):
        return None
