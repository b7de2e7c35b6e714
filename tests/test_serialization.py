"""Checkpoints: real torch reads ours, we read real torch's, and nothing a file asks for runs."""

import collections
import dataclasses
import datetime
import enum
import functools
import inspect
import io
import itertools
import mmap
import operator
import os
import pathlib
import pickle
import signal
import struct
import subprocess
import sys
import types
import typing
import warnings
import zipfile

import numpy as np
import pytest
import torch

import torchlike
from torchlike import serialization

BOTH_WAYS = [("torch", "torchlike"), ("torchlike", "torch"), ("torchlike", "torchlike")]
LIBRARIES = {"torch": torch, "torchlike": torchlike}
DTYPES = (
    "bool uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex64 complex128 "
    "float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz"
).split()
LEGACY = {"_use_new_zipfile_serialization": False}


def through(writer: str, reader: str, make, path=None, weights_only=True, **how):
    """What ``reader`` loads of ``make(writer library)``, by a path or in memory; and the original."""
    original = make(LIBRARIES[writer])
    f = io.BytesIO() if path is None else path
    LIBRARIES[writer].save(original, f, **how)
    if path is None:
        f.seek(0)
    return LIBRARIES[reader].load(f, weights_only=weights_only), original


def describe(x):
    """All there is to know about a value, in terms that both libraries share."""
    if isinstance(x, (torch.Tensor, torchlike.Tensor)):
        kind = type(x).__name__
        values = x.detach().resolve_conj().tolist() if x.device.type != "meta" else None
        facts = (str(x.dtype), tuple(x.shape), tuple(x.stride()), x.storage_offset(), x.requires_grad, str(x.device))
        return kind, *facts, repr(values)
    if isinstance(x, dict):
        return type(x).__name__, [(key, describe(value)) for key, value in x.items()]
    if isinstance(x, (list, tuple)):
        return type(x).__name__, [describe(value) for value in x]
    return type(x).__name__, repr(x)


@pytest.mark.parametrize("writer, reader", BOTH_WAYS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(writer, reader, dtype, tmp_path):
    def make(lib):
        x = lib.tensor([[0.0, 1.5, -3.0], [100.0, 2.0, 1.0]])
        return (x.abs() if dtype.startswith("uint") else x).to(getattr(lib, dtype))

    loaded, original = through(writer, reader, make, tmp_path / "x.pt")
    assert describe(loaded) == describe(original)


def _everything(lib):
    base = lib.arange(12.0).reshape(3, 4)
    return {
        "scalar": lib.tensor(3.5),
        "empty": lib.zeros(0, 3),
        "transposed": base.t(),
        "strided": base[:, 1::2],
        "row": base[1],
        "expanded": lib.ones(1, 3).expand(4, 3),
        "leaf": lib.ones(2, requires_grad=True),
        "result": lib.ones(2, requires_grad=True) * 2,
        "parameter": lib.nn.Parameter(lib.zeros(2)),
        "frozen": lib.nn.Parameter(lib.zeros(2), requires_grad=False),
        "size": base.shape,
        "device": lib.device("cuda", 1),
        "cpu": lib.device("cpu"),
        "dtype": lib.bfloat16,
        "nested": [1, (2.5, None, True), {"k": b"bytes\xff"}, 2**70, -1, 1j, "text \u00e9"],
        "ordered": collections.OrderedDict(z=1, a=lib.tensor([1, 2])),
        "set": {3},
        "meta": lib.zeros(2, 3, device="meta"),
    }


@pytest.mark.parametrize("writer, reader", BOTH_WAYS)
@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("in_memory", [False, True])
def test_everything(writer, reader, weights_only, legacy, in_memory, tmp_path):
    path = None if in_memory else str(tmp_path / "all of it.v1.tar")
    how = LEGACY if legacy else {}
    loaded, original = through(writer, reader, _everything, path, weights_only=weights_only, **how)
    assert describe(loaded) == describe(original)


def test_pickles_are_those_of_torch_byte_for_byte():
    made = {}
    for name, lib in LIBRARIES.items():
        f = io.BytesIO()
        values = _everything(lib)
        del values["cpu"]  # whether two equal strings are one object shows in a pickle
        lib.save(values, f)
        archive = zipfile.ZipFile(f)
        made[name] = archive.namelist(), {entry: archive.read(entry) for entry in archive.namelist()}
    assert made["torchlike"][0] == made["torch"][0]
    for entry in made["torch"][0]:
        if not entry.endswith("serialization_id"):
            assert made["torchlike"][1][entry] == made["torch"][1][entry], entry


@pytest.mark.parametrize("writer, reader", BOTH_WAYS)
@pytest.mark.parametrize("legacy", [False, True])
def test_shared_memory_stays_shared(writer, reader, legacy):
    def make(lib):
        base = lib.arange(6.0)
        return [base, base.view(2, 3), base[4:], base.view(2, 3).t(), lib.nn.Parameter(base), base.clone()]

    (base, matrix, tail, turned, parameter, copy), _ = through(writer, reader, make, **(LEGACY if legacy else {}))
    tail[0] = -1.0
    turned[0, 0] = 7.0
    expected = [7.0, 1.0, 2.0, 3.0, -1.0, 5.0]
    assert base.tolist() == matrix.flatten().tolist() == parameter.tolist() == expected
    assert copy.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


@pytest.mark.parametrize("writer, reader", BOTH_WAYS)
@pytest.mark.parametrize("legacy", [False, True])
def test_storages_themselves(writer, reader, legacy):
    def make(lib):
        x = lib.arange(6.0).reshape(2, 3)
        apart = [] if legacy else [lib.arange(3).untyped_storage()]  # torch cannot read those of the older format
        return [x, x.storage(), x[1].storage(), lib.arange(3, dtype=lib.int16).storage(), *apart]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loaded, original = through(writer, reader, make, **(LEGACY if legacy else {}))
        x, storage, again, *others = loaded
        assert [type(s).__name__ for s in loaded[1:]] == ["TypedStorage"] * len(loaded[1:])
        assert [s.tolist() for s in loaded] == [s.tolist() for s in original]
        assert [s.dtype.itemsize for s in others] == [2] if legacy else [2, 1]
        x[0, 1] = 7
        storage[5] = 8
        assert x.tolist() == [[0, 7, 2], [3, 4, 8]] and again.tolist() == storage.tolist() == [0, 7, 2, 3, 4, 8]


def test_one_memory_as_two_types_is_refused_unless_it_is_empty():
    def refused(lib, make):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            x = make(lib)
            try:
                lib.save([x, x.view(lib.int32), x.untyped_storage()], io.BytesIO())
            except RuntimeError as error:
                return str(error)
    for make in (lambda lib: lib.ones(2), lambda lib: lib.ones(0)):
        assert refused(torchlike, make) == refused(torch, make)
    for legacy in (False, True):
        made, _ = through("torchlike", "torch", lambda lib: [x := lib.ones(0), x.view(lib.int32)], **(LEGACY if legacy else {}))
        assert [str(x.dtype) for x in made] == ["torch.float32", "torch.int32"]


@pytest.mark.parametrize("writer, reader", BOTH_WAYS)
def test_complex_numbers_of_halves(writer, reader):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (whole, part), original = through(writer, reader, lambda lib: [x := lib.tensor([1 + 2j, 3.5 - 1j]).to(lib.complex32), x[1:]])
        assert str(whole.dtype) == "torch.complex32"
        assert whole.to(LIBRARIES[reader].complex64).tolist() == [1 + 2j, 3.5 - 1j] and part.to(LIBRARIES[reader].complex64).tolist() == [3.5 - 1j]


@pytest.mark.parametrize("legacy", [False, True])
def test_a_file_that_is_still_open_can_be_read_by_its_name(tmp_path, legacy):
    with open(tmp_path / "open.pt", "wb") as f:
        torchlike.save({"a": torchlike.arange(3)}, f, **(LEGACY if legacy else {}))
        assert torchlike.load(tmp_path / "open.pt")["a"].tolist() == [0, 1, 2]


def _written_by_torch_before_0_4(part: tuple | None, python_2: bool) -> io.BytesIO:
    """A file with two tensors on one storage 0, 1, ..., 5, of which the second lies in a part (key, start, size) of it."""
    def text(x: str) -> bytes:
        return (pickle.SHORT_BINSTRING if python_2 else pickle.BINUNICODE) + struct.pack("<B" if python_2 else "<I", len(x)) + x.encode()

    def number(n: int) -> bytes:
        return pickle.BININT + struct.pack("<i", n)

    def tuple_of(*items: bytes) -> bytes:
        return pickle.MARK + b"".join(items) + pickle.TUPLE

    def tensor(view: tuple | None, size: int) -> bytes:
        storage = [text("storage"), pickle.GLOBAL + b"torch\nFloatStorage\n", text("k"), text("cpu"), number(6)]
        storage.append(pickle.NONE if view is None else tuple_of(text(view[0]), number(view[1]), number(view[2])))
        arguments = tuple_of(*storage) + pickle.BINPERSID, number(0), tuple_of(number(size)), tuple_of(number(1))
        return pickle.GLOBAL + b"torch._utils\n_rebuild_tensor\n" + tuple_of(*arguments) + pickle.REDUCE
    stream = io.BytesIO()
    for x in (0x1950A86A20F9469CFC6C, 1001, {"protocol_version": 1001, "little_endian": True, "type_sizes": {}}):
        pickle.dump(x, stream, 2)
    stream.write(pickle.PROTO + b"\2" + tuple_of(tensor(None, 6), tensor(part, 6 if part is None else 3)) + pickle.STOP)
    stream.write(pickle.PROTO + b"\2" + pickle.EMPTY_LIST + text("k") + pickle.APPEND + pickle.STOP)
    stream.write(struct.pack("<q", 6) + np.arange(6, dtype=np.float32).tobytes())
    stream.seek(0)
    return stream


@pytest.mark.parametrize("part, python_2", [(None, False), (None, True), (("part", 2, 3), False), (("part", 2, 3), True)])
def test_files_of_older_versions(part, python_2):
    found = []
    for lib in (torch, torchlike):
        whole, some = lib.load(_written_by_torch_before_0_4(part, python_2), encoding="bytes" if python_2 else "ascii")
        some[0] = 9
        found.append([whole.tolist(), some.tolist()])
    assert found[0] == found[1]


@pytest.mark.parametrize("part", [("part", 2, 9), ("part", -1, 2)])
def test_parts_outside_of_their_storage_are_refused(part):
    with pytest.raises(pickle.UnpicklingError, match="part of a storage"):
        torchlike.load(_written_by_torch_before_0_4(part, False))


@pytest.mark.parametrize("writer, reader", BOTH_WAYS)
def test_view_alone_brings_its_whole_storage(writer, reader):
    loaded, _ = through(writer, reader, lambda lib: lib.arange(10.0)[2:8:3])
    assert loaded.tolist() == [2.0, 5.0] and loaded.stride() == (3,) and loaded.storage_offset() == 2
    assert loaded.as_strided((10,), (1,), 0).tolist() == list(range(10))


@pytest.mark.parametrize("writer, reader", BOTH_WAYS)
def test_dense_layouts(writer, reader):
    def make(lib):
        images = lib.arange(120.0).reshape(2, 3, 4, 5)
        return images.contiguous(memory_format=lib.channels_last), images.permute(3, 1, 0, 2).clone()

    loaded, original = through(writer, reader, make)
    assert describe(loaded) == describe(original)


@pytest.mark.parametrize("writer, reader", BOTH_WAYS)
def test_attributes_and_subclasses(writer, reader):
    def make(lib):
        x, p = lib.ones(2), lib.nn.Parameter(lib.ones(2))
        x.note, p.is_decayed = "kept", True
        return x, p

    (x, p), _ = through(writer, reader, make)
    assert x.note == "kept" and p.is_decayed is True and p.requires_grad and type(p).__name__ == "Parameter"


@pytest.mark.parametrize("writer, reader", BOTH_WAYS)
def test_state_dicts(writer, reader, tmp_path):
    def make(lib):
        lib.manual_seed(0)
        model = lib.nn.Sequential(lib.nn.Linear(3, 4), lib.nn.BatchNorm1d(4), lib.nn.Linear(4, 1, bias=False))
        optimizer = lib.optim.AdamW(model.parameters(), lr=0.1)
        model(lib.ones(5, 3)).sum().backward()
        optimizer.step()
        states = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "rng": lib.get_rng_state()}
        return {**states, "epoch": 3}

    loaded, original = through(writer, reader, make, tmp_path / "checkpoint.pt")
    assert describe(loaded["model"]) == describe(original["model"])
    assert describe(loaded["rng"]) == describe(original["rng"])
    assert loaded["model"]._metadata == original["model"]._metadata
    lib = LIBRARIES[reader]
    model = lib.nn.Sequential(lib.nn.Linear(3, 4), lib.nn.BatchNorm1d(4), lib.nn.Linear(4, 1, bias=False))
    model.load_state_dict(loaded["model"])
    optimizer = lib.optim.AdamW(model.parameters())
    optimizer.load_state_dict(loaded["optimizer"])
    assert optimizer.param_groups[0]["lr"] == 0.1 and float(optimizer.state_dict()["state"][0]["step"]) == 1.0


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_pickle_protocols(protocol):
    loaded, original = through("torchlike", "torch", _everything, weights_only=False, pickle_protocol=protocol)
    assert describe(loaded) == describe(original)
    loaded, original = through("torch", "torchlike", _everything, pickle_protocol=protocol)
    assert describe(loaded) == describe(original)


# -- whole modules and other classes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("writer, reader", BOTH_WAYS)
def test_whole_modules(writer, reader):
    def make(lib):
        lib.manual_seed(1)
        return lib.nn.Sequential(lib.nn.Linear(3, 2), lib.nn.ReLU(), lib.nn.Dropout(0.3)).eval()

    loaded, original = through(writer, reader, make, weights_only=False)
    lib = LIBRARIES[reader]
    assert isinstance(loaded, lib.nn.Sequential) and repr(loaded) == repr(original)
    outputs = [model(library.ones(3)).tolist() for model, library in [(loaded, lib), (original, LIBRARIES[writer])]]
    assert outputs[0] == pytest.approx(outputs[1])
    with pytest.raises(pickle.UnpicklingError):
        through(writer, reader, make)


class _Named(torchlike.nn.Module):
    """As torchmetrics' Metric: the pickle has arguments that object's own `__new__` does not look at."""

    def __init__(self, size):
        super().__init__()
        self.size = size

    def __getnewargs__(self):
        return tuple(str(self))


def test_arguments_that_new_leaves_aside():
    assert through("torchlike", "torchlike", lambda t: _Named(3), weights_only=False)[0].size == 3


@pytest.mark.parametrize("writer, reader", BOTH_WAYS)
def test_functions_of_torch_are_referred_to(writer, reader):
    names = ["tanh", "relu", "nn.functional.relu", "nn.functional.gelu"]
    functions = [functools.partial(functools.reduce, getattr, name.split(".")) for name in names]
    loaded, _ = through(writer, reader, lambda lib: [find(lib) for find in functions], weights_only=False)
    lib = LIBRARIES[reader]
    x = lib.tensor([-1.0, 2.0])
    assert [f(x).tolist() for f in loaded] == [find(lib)(x).tolist() for find in functions]
    with pytest.raises(pickle.UnpicklingError):
        through(writer, reader, lambda lib: functions[0](lib))


class Colour(enum.Enum):
    RED = 1


@dataclasses.dataclass
class Config:
    width: int
    names: list


@dataclasses.dataclass(slots=True)
class Slotted:
    width: int


class Settings(types.SimpleNamespace):
    """As ultralytics keeps them in its checkpoints."""


Pair = collections.namedtuple("Pair", "left right")


class Constructed:
    """Its constructor must not run."""

    def __init__(self):
        raise AssertionError("constructed by a file")


class SetsItsState:
    def __init__(self):
        self.value = 1

    def __setstate__(self, state):
        raise AssertionError("state set by a file")


class MakesItself:
    def __new__(cls, *args):
        return super().__new__(cls)


def _bare():
    bare = Constructed.__new__(Constructed)
    bare.value = 5
    return bare


PLAIN = [
    Colour.RED,
    Config(3, ["a"]),
    Slotted(4),
    Pair(1, [2]),
    types.SimpleNamespace(a=1),
    Settings(a=1, b=[2]),
    datetime.datetime(2020, 1, 2, tzinfo=datetime.UTC),
    pathlib.PurePosixPath("/a/b"),
    collections.defaultdict(list, a=[1]),
    collections.deque([1, 2], 5),
    collections.Counter("aab"),
    slice(1, 2),
    range(3),
    frozenset({1}),
    bytearray(b"x"),
    np.float32(1.5),
    np.dtype("i4"),
]


@pytest.mark.parametrize("value", PLAIN, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("writer", ["torch", "torchlike"])
def test_plain_python_data_without_weights_only(value, writer):
    loaded, _ = through(writer, "torchlike", lambda lib: value, weights_only=False)
    assert type(loaded) is type(value) and loaded == value


@pytest.mark.parametrize("module", ["pathlib", "pathlib._local"])  # where Python has paths' classes, and where Python 3.13 has them
def test_paths_of_every_python(module):
    """In files of PyTorch's oldest kind, which are pickles one after the other."""
    f = io.BytesIO()
    torch.save([pathlib.PurePosixPath("/a/b")], f, _use_new_zipfile_serialization=False)
    named = f"c{pathlib.PurePosixPath.__module__}\nPurePosixPath\n".encode()
    assert f.getvalue().count(named) == 1
    moved = io.BytesIO(f.getvalue().replace(named, f"c{module}\nPurePosixPath\n".encode()))
    assert torchlike.load(moved, weights_only=False) == [pathlib.PurePosixPath("/a/b")]


def test_numpy_arrays_without_weights_only():
    arrays = [np.arange(6.0).reshape(2, 3), np.array(["a", "bc"]), np.array([1, "x", None], dtype=object)]
    loaded, _ = through("torch", "torchlike", lambda lib: arrays, weights_only=False)
    for array, original in zip(loaded, arrays, strict=True):
        assert array.dtype == original.dtype and array.tolist() == original.tolist()


def test_constructors_do_not_run():
    loaded, _ = through("torch", "torchlike", lambda lib: _bare(), weights_only=False)
    assert type(loaded) is Constructed and loaded.value == 5


def test_markers_of_the_standard_library():
    """A class that is only a mark (what libraries keep of a function's signature holds some) is data."""
    made = {"default": inspect.Parameter.empty, "missing": dataclasses.MISSING.__class__}
    loaded, _ = through("torch", "torchlike", lambda lib: made, weights_only=False)
    assert loaded == made
    with pytest.raises(pickle.UnpicklingError, match="inspect._empty"):
        _asked(inspect.Parameter.empty, True)


def test_annotations():
    """Types as data: what a library keeps of a function's signature."""
    sources = """Optional[int]; Union[torch.Tensor, str, None]; Tuple[int, ...]; Callable[[int], str]; Any; List[Dict[str, Config]]; Literal["a", 1]; Sequence
list[int]; dict[str, list[Config]]; int | None; list[int] | Config | str; type(None)"""
    made = [eval(source, {**vars(typing), "torch": torch, "Config": Config}) for line in sources.split("\n") for source in line.split("; ")]
    loaded, _ = through("torch", "torchlike", lambda lib: made, weights_only=False)
    assert [str(x).replace("torchlike", "torch") for x in loaded] == [str(x) for x in made]
    mine, _ = through("torchlike", "torchlike", lambda lib: made[:1] + made[2:], weights_only=False)
    assert mine == made[:1] + made[2:]


# -- files that ask for more ------------------------------------------------------------------------------------------


class Asks:
    """Pickles as the call it was given."""

    def __init__(self, *call):
        self.call = call

    def __reduce__(self):
        return self.call


FORBIDDEN = [
    Asks(os.system, ("echo ran",)),
    Asks(subprocess.Popen, (["echo", "ran"],)),
    Asks(eval, ("1 + 1",)),
    Asks(exec, ("raise SystemExit",)),
    Asks(getattr, (int, "real")),
    Asks(functools.partial, (print, "ran")),
    Asks(np.memmap, ("/tmp/never", "uint8", "w+")),
    Asks(Constructed, ()),
    Asks(pickle.loads, (b"N.",)),
    Asks(__import__, ("os",)),
    Asks(io.open, ("/tmp/never", "w")),
    Asks(operator.getitem, ({"a": 1}, "a")),
    Asks(operator.getitem, (Config, int)),
    Asks(functools.reduce, (operator.or_, [1, 2])),
    Asks(operator.or_, (int, str)),
    Asks(type, (3,)),
    Asks(type, ("Made", (), {})),
    Asks(types.GenericAlias, (3, int)),
    SetsItsState(),
    MakesItself(),
]


def _asked(value, weights_only, legacy=False):
    f = io.BytesIO()
    torch.save({"weight": torch.ones(2), "other": value}, f, **(LEGACY if legacy else {}))
    f.seek(0)
    return torchlike.load(f, weights_only=weights_only)


@pytest.mark.parametrize("value", FORBIDDEN, ids=lambda value: getattr(value, "call", [type(value)])[0].__name__)
@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("legacy", [True, False])
def test_refused(value, weights_only, legacy, capfd):
    with pytest.raises(pickle.UnpicklingError, match="GLOBAL") as caught:
        _asked(value, weights_only, legacy)
    called = value.call[0] if isinstance(value, Asks) else type(value)
    assert called.__name__ in str(caught.value)
    assert "ran" not in capfd.readouterr().out


def test_the_refusal_names_what_torch_names():
    f = io.BytesIO()
    torch.save(Config(1, []), f)
    messages = []
    for lib in (torch, torchlike):
        f.seek(0)
        with pytest.raises(pickle.UnpicklingError) as caught:
            lib.load(f)
        messages.append(next(line for line in str(caught.value).splitlines() if "WeightsUnpickler error" in line))
    assert messages[0].strip() == messages[1].strip()


def _pickled(*operations: bytes) -> io.BytesIO:
    """A zip checkpoint around a pickle written by hand."""
    f = io.BytesIO()
    with zipfile.ZipFile(f, "w") as archive:
        archive.writestr("a/data.pkl", b"\x80\x02" + b"".join(operations) + b".")
        archive.writestr("a/data/0", bytes(16))
    f.seek(0)
    return f


def _name(full: str) -> bytes:
    module, _, name = full.rpartition(".")
    return f"c{module}\n{name}\n".encode()


STORAGE = b"(X\x07\x00\x00\x00storage" + _name("torch.FloatStorage") + b"X\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x04tQ"
BY_HAND = {
    "a call of a value": [b"K\x01)R"],
    "a call of a class that only stands for itself": [_name("torch.Tensor"), b")R"],
    "a new Tensor": [_name("torch.Tensor"), b")\x81"],
    "state for a class": [_name("torch.Tensor"), b"}X\x01\x00\x00\x00aK\x01sb"],
    "state for a function": [_name("torch._utils._rebuild_tensor_v2"), b"}X\x01\x00\x00\x00aK\x01sb"],
    "state for a list": [b"]}X\x01\x00\x00\x00aK\x01sb"],
    "items for a list": [b"]K\x00K\x01s"],
    "an append to a dict": [b"}K\x00a"],
    "an attribute of a module": [_name("torch.os.system")],
    "an attribute of an allowed class": [_name("collections.OrderedDict.__init__")],
    "an extension code": [b"\x82\x01"],
    "an old-style instance": [b"(ios\nsystem\n"],
    "an empty stack": [b"0"],
    "an unknown memo": [b"h\x05"],
    "an unknown operation": [b"\xff"],
    "a foreign persistent id": [b"X\x04\x00\x00\x00evilQ"],
    "a rebuild without arguments": [_name("torch._utils._rebuild_tensor_v2"), b")R"],
    "a rebuild through a foreign function": [
        _name("torch._tensor._rebuild_from_type_v2"),
        b"(" + _name("builtins.set") + _name("torch.Tensor") + b")NtR",
    ],
    "a negative stride": [
        _name("torch._utils._rebuild_tensor"),
        b"(" + STORAGE + b"K\x00K\x02\x85J\xff\xff\xff\xff\x85tR",
    ],
}


@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("case", BY_HAND)
def test_hand_written_pickles(case, weights_only):
    with pytest.raises((pickle.UnpicklingError, RuntimeError)):
        torchlike.load(_pickled(*BY_HAND[case]), weights_only=weights_only)


def test_a_tensor_outside_of_its_storage_is_refused():
    good = _pickled(_name("torch._utils._rebuild_tensor"), b"(" + STORAGE + b"K\x00K\x04\x85K\x01\x85tR")
    assert torchlike.load(good).tolist() == [0.0] * 4
    bad = _pickled(_name("torch._utils._rebuild_tensor"), b"(" + STORAGE + b"K\x01K\x04\x85K\x01\x85tR")
    with pytest.raises(RuntimeError, match="out of bounds for storage of size 16"):
        torchlike.load(bad)


def test_safe_globals():
    value = SetsItsState.__new__(SetsItsState)  # without state: nothing to set
    with pytest.raises(pickle.UnpicklingError):
        _asked(value, weights_only=True)
    with serialization.safe_globals([SetsItsState]):
        assert serialization.get_safe_globals() == [SetsItsState]
        assert type(_asked(value, weights_only=True)["other"]) is SetsItsState
    assert serialization.get_safe_globals() == []
    serialization.add_safe_globals([(len, "builtins.len"), Config])
    try:
        assert _asked(Asks(len, ([1, 2],)), weights_only=True)["other"] == 2
        assert _asked(Config(1, []), weights_only=True)["other"] == Config(1, [])
    finally:
        serialization.clear_safe_globals()
    with pytest.raises(pickle.UnpicklingError):
        _asked(Config(1, []), weights_only=True)


def test_get_unsafe_globals_in_checkpoint(tmp_path):
    path = tmp_path / "x.pt"
    torch.save({"w": torch.ones(1), "s": np.float32(3), "c": Config(1, [])}, path)
    ours = serialization.get_unsafe_globals_in_checkpoint(path)
    assert sorted(ours) == sorted(torch.serialization.get_unsafe_globals_in_checkpoint(path))


# -- files -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights_only", [True, False])
def test_truncated_files_are_named(tmp_path, weights_only):
    for how in ({}, LEGACY):
        path = tmp_path / "whole.pt"
        torchlike.save({"a": torchlike.arange(100.0), "b": torchlike.ones(3)}, path, **how)
        whole = path.read_bytes()
        cut = tmp_path / "cut.pt"
        for length in [0, 1, 3, 10, 100, len(whole) // 3, len(whole) // 2, len(whole) - 30, len(whole) - 1]:
            cut.write_bytes(whole[:length])
            with pytest.raises((RuntimeError, EOFError, pickle.UnpicklingError), match="cut.pt"):
                torchlike.load(cut, weights_only=weights_only)


@pytest.mark.parametrize("legacy", [False, True])
def test_damaged_pickles_are_refused_or_harmless(legacy):
    f = io.BytesIO()
    torch.save({"a": torch.ones(2, 3).t(), "o": [torch.Size([1]), {1}, b"x"]}, f, **(LEGACY if legacy else {}))
    whole = f.getvalue() if legacy else zipfile.ZipFile(f).read("archive/data.pkl")
    random = np.random.default_rng(0)
    refused = 0
    for _ in range(300):
        damaged = bytearray(whole)
        for position in random.integers(0, len(whole) - 30, 2):
            damaged[position] = random.integers(256)
        stream = io.BytesIO(damaged) if legacy else _pickled(bytes(damaged[2:-1]))
        try:
            torchlike.load(stream, weights_only=bool(random.integers(2)))
        except (pickle.UnpicklingError, RuntimeError, EOFError):
            refused += 1
    assert refused > 150


def test_a_flipped_bit_is_found(tmp_path):
    path = tmp_path / "x.pt"
    torchlike.save(torchlike.arange(1000.0), path)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(RuntimeError, match=r"data/0 of .*x\.pt: it is corrupted"):
        torchlike.load(path)


class _Reads:
    """A file object that counts how it is read; torch asks for seek, tell and read only."""

    def __init__(self, content, into):
        self.file, self.largest, self.into = io.BytesIO(content), 0, 0
        if into:
            self.readinto = self._readinto

    def read(self, count=-1):
        data = self.file.read(count)
        self.largest = max(self.largest, len(data))
        return data

    def _readinto(self, room):
        self.into += len(room)
        return self.file.readinto(room)

    def seek(self, *where):
        return self.file.seek(*where)

    def tell(self):
        return self.file.tell()


@pytest.mark.parametrize("how", [{}, LEGACY], ids=["zip", "legacy"])
@pytest.mark.parametrize("into", [False, True])
def test_elements_are_read_where_they_stay(how, into):
    f = io.BytesIO()
    torch.save(torch.arange(5000.0), f, **how)
    file = _Reads(f.getvalue(), into)
    assert torchlike.load(file).sum() == 4999 * 2500
    assert (file.into, file.largest < 20000) == ((20000, True) if into else (0, False))


@pytest.mark.parametrize(
    "content, error",
    [
        (b"", EOFError),
        (b"hello world, this is text\n", pickle.UnpicklingError),
        (b"\x89PNG\r\n\x1a\n" + bytes(100), pickle.UnpicklingError),
        (pickle.dumps({"a": 1}), pickle.UnpicklingError),
        (bytes(257) + b"ustar" + bytes(300), RuntimeError),
        (b"PK\x03\x04" + bytes(100), RuntimeError),
    ],
)
def test_foreign_files_are_named(tmp_path, content, error):
    path = tmp_path / "foreign.bin"
    path.write_bytes(content)
    with pytest.raises(error, match="foreign.bin"):
        torchlike.load(path)


def test_foreign_zip_files_are_named(tmp_path):
    path = tmp_path / "foreign.zip"
    reasons = {"readme": "not in a subdirectory", "d/readme": "data.pkl", "d/constants.pkl": "TorchScript"}
    for entry, message in reasons.items():
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(entry, "text")
        with pytest.raises(RuntimeError, match=f"(?s)(?=.*{message})(?=.*foreign.zip)"):
            torchlike.load(path)


@pytest.mark.parametrize(
    "call",
    [
        lambda lib, folder: lib.load(folder / "missing.pt"),
        lambda lib, folder: lib.load(folder),
        lambda lib, folder: lib.load(None),
        lambda lib, folder: lib.load(3),
        lambda lib, folder: lib.save(1, None),
        lambda lib, folder: lib.save(1, folder / "no" / "x.pt"),
        lambda lib, folder: lib.save(1, folder),
        lambda lib, folder: lib.save(lambda: 0, folder / "x.pt"),
        lambda lib, folder: lib.load(folder / "g.pt", map_location="cuda"),
        lambda lib, folder: lib.load(folder / "g.pt", map_location={"cpu": "cuda:0"}),
        lambda lib, folder: lib.load(folder / "g.pt", map_location="bogus"),
        lambda lib, folder: lib.load(folder / "g.pt", map_location="cpu:0"),
        lambda lib, folder: lib.load(folder / "g.pt", map_location=3),
        lambda lib, folder: lib.load(folder / "g.pt", pickle_module=pickle, weights_only=True),
        lambda lib, folder: lib.load((folder / "g.pt").open("rb"), mmap=True),
        lambda lib, folder: lib.load(folder / "legacy.pt", mmap=True),
        lambda lib, folder: lib.save([lib.ones(2), (x := lib.ones(2)), x.view(lib.int32)], folder / "x.pt"),
        lambda lib, folder: lib.serialization.set_default_load_endianness("little"),
    ],
)
def test_errors_are_those_of_torch(call, tmp_path):
    torch.save(torch.ones(2), tmp_path / "g.pt")
    torch.save(torch.ones(2), tmp_path / "legacy.pt", **LEGACY)
    raised = []
    for lib in (torch, torchlike):
        with pytest.raises(Exception) as caught:  # noqa: B017  whichever it is: the other must raise the same
            call(lib, tmp_path)
        raised.append(caught.type)
    assert raised[1] is raised[0]


def test_map_location():
    f = io.BytesIO()
    torch.save({"w": torch.ones(2)}, f)
    asked = []

    def here(storage, location):
        asked.append(location)
        return storage

    places = [
        ("cpu", "cpu"),
        (torchlike.device("meta"), "meta"),
        ({"cpu": "meta"}, "meta"),
        ({"cuda:0": "meta"}, "cpu"),
        (here, "cpu"),
        (lambda storage, location: None, "cpu"),
    ]
    for where, expected in places:
        f.seek(0)
        assert torchlike.load(f, map_location=where)["w"].device.type == expected
    assert asked == ["cpu"]


@pytest.mark.parametrize("reader", ["torch", "torchlike"])
def test_mmap(reader, tmp_path):
    path = tmp_path / "x.pt"
    torchlike.save({"a": torchlike.arange(100.0), "b": torchlike.ones(0), "c": torchlike.tensor(True)}, path)
    before = path.read_bytes()
    loaded = LIBRARIES[reader].load(path, mmap=True)
    assert loaded["a"].tolist() == list(range(100)) and loaded["b"].numel() == 0 and loaded["c"].item() is True
    loaded["a"][0] = 5.0
    assert loaded["a"][0].item() == 5.0 and path.read_bytes() == before


def _data_start(data: bytes, entry: zipfile.ZipInfo) -> int:
    name, extra = struct.unpack("<HH", data[entry.header_offset + 26 : entry.header_offset + 30])
    return entry.header_offset + 30 + name + extra


def test_records_start_at_multiples_of_64(tmp_path):
    path = tmp_path / "a name of some length.pt"
    torchlike.save([torchlike.ones(n) for n in (1, 5, 17, 0)], path)
    data = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert {name.split("/")[0] for name in archive.namelist()} == {"a name of some length"}
        for entry in archive.infolist():
            assert _data_start(data, entry) % 64 == 0


def test_zip64_fields(tmp_path, monkeypatch):
    from torchlike._serialization import archive

    path = tmp_path / "x.pt"
    values = torchlike.arange(50.0)
    monkeypatch.setattr(archive, "_LARGE", 150)  # as if 150 bytes were 4 GiB: sizes and offsets move to 64-bit fields
    torchlike.save([values, values[:3].clone()], path)
    monkeypatch.undo()
    for lib in (torch, torchlike):
        first, second = lib.load(path)
        assert first.tolist() == list(range(50)) and second.tolist() == [0.0, 1.0, 2.0]
    assert zipfile.ZipFile(path).testzip() is None


@pytest.mark.parametrize("legacy", [False, True])
def test_big_endian_files(legacy, tmp_path):
    values = {
        "f": np.array([1.5, -2.0], ">f4"),
        "c": np.array([1 + 2j], ">c8"),
        "i": np.array([1, 2**40], ">i8"),
        "b": np.array([1], ">u1"),
    }
    f = io.BytesIO()
    originals = {key: torch.from_numpy(value.astype(value.dtype.newbyteorder("<"))) for key, value in values.items()}
    torch.save(originals, f, **(LEGACY if legacy else {}))
    data = f.getvalue()
    for key, value in values.items():
        little = originals[key].numpy().tobytes()
        assert data.count(little) == 1 or len(little) == 1
        if len(little) > 1:
            data = data.replace(little, value.tobytes())
    if legacy:
        data = data.replace(b"little_endianq\x02\x88", b"little_endianq\x02\x89")
        for numel in (1, 2):
            data = data.replace(numel.to_bytes(8, "little"), numel.to_bytes(8, "big"))
        loaded = torchlike.load(io.BytesIO(data))
    else:
        rewritten = io.BytesIO()
        with zipfile.ZipFile(f) as source, zipfile.ZipFile(rewritten, "w") as target:
            for entry in source.infolist():
                content = data[_data_start(data, entry) :][: entry.file_size]
                target.writestr(entry.filename, b"big" if entry.filename.endswith("byteorder") else content)
        rewritten.seek(0)
        loaded = torchlike.load(rewritten)
    for key, original in originals.items():
        assert loaded[key].tolist() == original.tolist()


def test_write_only_streams_and_two_objects_in_one_legacy_stream(tmp_path):
    class OnlyWrites:
        def __init__(self):
            self.parts = []

        def write(self, data):
            self.parts.append(bytes(data))

    stream = OnlyWrites()
    torchlike.save(torchlike.ones(2), stream)
    assert torch.load(io.BytesIO(b"".join(stream.parts))).tolist() == [1.0, 1.0]
    f = io.BytesIO()
    for value in (1, torchlike.ones(2)):
        torchlike.save(value, f, **LEGACY)
    f.seek(0)
    assert torchlike.load(f) == 1 and torchlike.load(f).tolist() == [1.0, 1.0]


# -- atomic ------------------------------------------------------------------------------------------------------------


def test_a_failed_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "x.pt"
    torchlike.save("old", path)

    class Fails:
        def __reduce__(self):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        torchlike.save([torchlike.ones(3), Fails()], path)
    assert torchlike.load(path) == "old" and os.listdir(tmp_path) == ["x.pt"]


def test_a_write_that_fails_midway_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "x.pt"
    torchlike.save("old", path)
    monkeypatch.setattr(serialization.ArchiveWriter, "close", lambda self: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        torchlike.save("new", path)
    assert torchlike.load(path) == "old" and os.listdir(tmp_path) == ["x.pt"]


def test_a_killed_process_leaves_the_old_file(tmp_path):
    path = tmp_path / "x.pt"
    torchlike.save("old", path)
    script = (
        "import os, signal, sys, torchlike\n"
        "from torchlike._serialization import archive\n"
        "archive.ArchiveWriter.close = lambda self: (self._stream.flush(), os.kill(os.getpid(), signal.SIGKILL))\n"
        "torchlike.save(torchlike.ones(1000), sys.argv[1])\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(pathlib.Path(torchlike.__file__).parents[1]), "JAX_PLATFORMS": "cpu"}
    died = subprocess.run([sys.executable, "-c", script, str(path)], env=environment, capture_output=True, timeout=120)
    assert died.returncode == -signal.SIGKILL, died.stderr
    assert torchlike.load(path) == "old"


def test_links_and_modes_survive(tmp_path):
    target, link = tmp_path / "target.pt", tmp_path / "link.pt"
    torchlike.save("old", target)
    os.chmod(target, 0o640)
    link.symlink_to(target)
    torchlike.save("new", link)
    assert link.is_symlink() and torchlike.load(target) == "new" and target.stat().st_mode & 0o777 == 0o640
    mask = os.umask(0o027)
    try:
        torchlike.save("x", tmp_path / "fresh.pt")
    finally:
        os.umask(mask)
    assert (tmp_path / "fresh.pt").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(("writer", "reader"), BOTH_WAYS)
def test_files_without_checksums(writer, reader, tmp_path):
    config = LIBRARIES[writer].serialization
    assert config.get_crc32_options() is True
    config.set_crc32_options(False)
    try:
        loaded, made = through(writer, reader, lambda t: {"x": t.arange(9.0)}, tmp_path / "x.pt")
        assert config.get_crc32_options() is False
    finally:
        config.set_crc32_options(True)
    assert {entry.CRC for entry in zipfile.ZipFile(tmp_path / "x.pt").infolist()} == {0}
    assert describe(loaded) == describe(made)


@pytest.mark.parametrize(("writer", "reader"), BOTH_WAYS)
def test_files_without_data(writer, reader, tmp_path):
    def make(t):
        x = t.arange(12.0).reshape(3, 4)
        return {"x": x, "part": x[1:, ::2], "n": t.ones(2, dtype=t.int64)}

    library = LIBRARIES[writer]
    with library.serialization.skip_data():
        loaded, made = through(writer, reader, make, tmp_path / "x.pt")
        with pytest.raises(RuntimeError, match="Cannot use skip_data=True with _use_new_zipfile_serialization=False"):
            library.save(made, io.BytesIO(), **LEGACY)
    (tmp_path / "whole").mkdir()
    through(writer, reader, make, tmp_path / "whole" / "x.pt")
    assert (tmp_path / "whole" / "x.pt").stat().st_size == (tmp_path / "x.pt").stat().st_size
    assert {name: describe(x.zero_()) for name, x in made.items()} == {name: describe(x) for name, x in loaded.items()}


def test_loading_without_data(tmp_path):
    torchlike.save({"x": torchlike.ones(2, 3), "y": 3}, tmp_path / "x.pt")
    with serialization.skip_data():
        loaded = torchlike.load(tmp_path / "x.pt")
    assert loaded["x"].shape == (2, 3) and loaded["y"] == 3 and not loaded["x"].any()
    assert torchlike.load(tmp_path / "x.pt")["x"].all()


@pytest.mark.parametrize("switch", ["TORCH_FORCE_WEIGHTS_ONLY_LOAD", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "both"])
@pytest.mark.parametrize("asked", [{}, {"weights_only": True}, {"weights_only": False}])
def test_environment_variables_say_weights_only(switch, asked, monkeypatch):
    def found(library):
        file = io.BytesIO()
        library.save({"when": datetime.date(2020, 1, 2)}, file)
        file.seek(0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                loaded = library.load(file, **asked)
            except Exception as error:
                loaded = type(error).__name__, str(error) if "Only one" in str(error) else ""
        return loaded, [str(w.message) for w in caught]
    for name in ("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"):
        if switch in (name, "both"):
            monkeypatch.setenv(name, "1")
    assert found(torchlike) == found(torch)


@pytest.mark.parametrize("options", [{}, LEGACY])
def test_files_that_only_read_seek_and_tell(options):
    class Plain:
        def __init__(self, file):
            self.read, self.seek, self.tell = file.read, file.seek, file.tell
    file = io.BytesIO()
    torchlike.save({"x": torchlike.arange(3)}, file, **options)
    file.seek(0)
    assert torchlike.load(Plain(file))["x"].tolist() == [0, 1, 2]


def _with_place(build, *args):
    """What a subclass's own `__reduce_ex__` names: a rebuilt tensor and where it belongs."""
    return build(*args[:-1]), args[-1]


@pytest.mark.parametrize("parameter", [False, True])
def test_subclasses_build_on_how_their_bases_are_saved(parameter):
    def saved(library):
        seen = []

        class Placed(library.Tensor):
            def __reduce_ex__(self, protocol):
                build, args = super().__reduce_ex__(protocol)
                seen.append((build.__name__, len(args), type(self.data).__name__))
                return (_with_place, (build, *args, "here")) if parameter else (list, ())

        class PlacedParameter(Placed, library.nn.Parameter):
            pass
        t = PlacedParameter(library.arange(3.0)) if parameter else library.arange(3.0).as_subclass(Placed)
        file = io.BytesIO()
        library.save([t], file)
        t.note = "kept"
        library.save([t], io.BytesIO())
        return seen, file
    (want, _), (got, file) = saved(torch), saved(torchlike)
    assert got == want
    if parameter:
        file.seek(0)
        ((loaded, place),) = torch.load(file, weights_only=False)
        assert type(loaded) is torch.nn.Parameter and loaded.tolist() == [0, 1, 2] and place == "here"


def test_storage_classes_by_name():
    for lib in LIBRARIES.values():
        find = lib.serialization.normalize_storage_type
        assert find(lib.FloatStorage) is lib.FloatStorage and find(type(lib.ones(2).untyped_storage())) is lib.UntypedStorage
        with pytest.raises(AttributeError):
            find(dict)


FUNCTIONS = ("nn.functional.relu", "add", "tanh", "split", "fft.rfft", "linalg.norm", "special.erf", "nn.init.kaiming_normal_", "nn.utils.clip_grad_norm_", "softmax")


@pytest.mark.parametrize("path", FUNCTIONS)
def test_functions_travel_by_name(path):
    """Between both libraries, as what an object refers to."""
    for writer, reader in itertools.permutations([torch, torchlike], 2):
        function, wanted = (functools.reduce(getattr, path.split("."), m) for m in (writer, reader))
        file = io.BytesIO()
        writer.save(function, file)
        file.seek(0)
        found = reader.load(file, weights_only=False)
        assert found is wanted or path == "special.erf"  # torchlike writes it as torch.erf


def test_methods_of_tensors_are_read():
    file = io.BytesIO()
    torch.save(torch.Tensor.relu, file)
    file.seek(0)
    assert torchlike.load(file, weights_only=False)(torchlike.tensor([-1.0, 2.0])).tolist() == [0.0, 2.0]


class _ByCode(pickle.Pickler):
    """As cloudpickle's: on top of the pickler in C, functions taken apart by an override, other things by a table."""

    dispatch_table = {memoryview: lambda m: (bytes, (list(m),))}

    def reducer_override(self, obj):
        return (operator.methodcaller, (obj.__name__,)) if isinstance(obj, types.FunctionType) and "<locals>" in obj.__qualname__ else NotImplemented


class _ByMethods(pickle._Pickler):
    """As dill's: on top of the pickler in Python, by its table of methods."""

    dispatch = dict(pickle._Pickler.dispatch)

    def save_function(self, obj):
        if "<locals>" in obj.__qualname__:
            self.save_reduce(operator.methodcaller, (obj.__name__,), obj=obj)
        else:
            self.save_global(obj)

    def save_memory(self, obj):
        self.save_reduce(bytes, (list(obj),), obj=obj)

    dispatch[types.FunctionType], dispatch[memoryview] = save_function, save_memory


@pytest.mark.parametrize("pickler", [_ByCode, _ByMethods])
@pytest.mark.parametrize("kwargs", [{}, LEGACY])
def test_another_pickle_module_writes_what_is_not_torchs(pickler, kwargs):
    def relu():
        pass
    module = types.SimpleNamespace(__name__="other", Pickler=pickler, dump=pickle.dump)
    found = []
    for lib in (torch, torchlike):
        layer, f = lib.nn.Linear(2, 1), io.BytesIO()
        with lib.no_grad():
            layer.weight.fill_(2), layer.bias.fill_(1)
        lib.save({"x": lib.arange(3.0), "f": relu, "m": [memoryview(b"abc"), lib.float16], "n": layer}, f, pickle_module=module, **kwargs)
        f.seek(0)
        made = torch.load(f, weights_only=False)
        found.append((made["x"].tolist(), made["f"](made["x"]).tolist(), made["m"], made["n"](torch.ones(2)).tolist(), type(made["n"])))
        with pytest.raises(AttributeError):
            lib.save(relu, io.BytesIO())
        with pytest.raises(AttributeError):
            lib.save(1, io.BytesIO(), pickle_module=types.SimpleNamespace(__name__="empty"))
        with pytest.raises(ValueError, match="'torch' supports dill >= "):
            lib.save(1, io.BytesIO(), pickle_module=types.SimpleNamespace(__name__="dill", __version__="0.3.0"))
        f.seek(0)
        with pytest.raises(RuntimeError, match="Can not safely load weights when explicit pickle_module is specified"):
            lib.load(f, pickle_module=module, weights_only=True)
    assert found[0] == found[1]
    f.seek(0)
    with pytest.raises(RuntimeError, match="runs no code of the file"):
        torchlike.load(f, pickle_module=module)


def test_settings_of_saving_and_loading(subject, oracle, tmp_path):
    """torch.utils.serialization.config: what acts when arguments say nothing, and what is refused."""
    def facts(torch):
        from importlib import import_module
        config = import_module(f"{torch.__name__}.utils.serialization").config
        x, path, found = torch.arange(5.0), tmp_path / f"{torch.__name__}.pt", [sorted(i for i in config.get_config_copy().items() if i[0] != "_TYPE_CHECKING")]
        with config.patch({"save.storage_alignment": 4096, "save.compute_crc32": False}):
            torch.save(x, path)
            found.append(torch.serialization.get_crc32_options())
            found.append(torch.PyTorchFileReader(str(path)).get_record_offset("data/0") % 4096)
        found.append(b"4096" in path.read_bytes())  # the record `.storage_alignment`
        with config.patch("load.mmap", True):
            found += [torch.load(path).tolist(), [str(error) for error in [_raised(lambda: torch.load(io.BytesIO(path.read_bytes())))]]]
        with torch.serialization.set_default_mmap_options(mmap.MAP_PRIVATE):
            found.append(torch.load(path, mmap=True).tolist())
        found += [torch.serialization.get_default_mmap_options() == mmap.MAP_PRIVATE, str(_raised(lambda: torch.serialization.set_default_mmap_options(99)))]
        torch.serialization.set_default_load_endianness(torch.serialization.LoadEndianness.BIG)
        try:
            found.append(config.load.endianness.name)
        finally:
            config.load.endianness = None
        return *found, torch.serialization.get_default_load_endianness(), str(_raised(lambda: setattr(config.load, "nothing", 1)))
    assert facts(subject) == facts(oracle)
    with pytest.raises(NotImplementedError, match="never reach a file"):
        subject.serialization.set_default_mmap_options(mmap.MAP_SHARED)


def _raised(call):
    with pytest.raises(Exception) as found:
        call()
    return found.value


@pytest.mark.parametrize("library", ["torch", "torchlike"])
def test_a_folder_that_is_missing_is_told_before_anything_is_pickled(library, tmp_path):
    with pytest.raises(RuntimeError, match=f"Parent directory {tmp_path}/runs does not exist"):
        LIBRARIES[library].save({"loss": lambda x: x}, tmp_path / "runs" / "model.pt")  # no pickle takes a lambda
    with pytest.raises((AttributeError, pickle.PicklingError)):
        LIBRARIES[library].save({"loss": lambda x: x}, tmp_path / "model.pt")
    assert library == "torch" or not list(tmp_path.iterdir())  # torch leaves a broken file
