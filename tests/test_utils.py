"""torch.utils beside data loading, hub and multiprocessing, against real torch where it can be the judge."""
import collections
import copy
import dataclasses
import enum
import io
import os
import pickle
import struct
import subprocess
import sys
import warnings
from collections import OrderedDict, defaultdict, deque
from pathlib import Path

import numpy as np
import pytest
import torch as real
import torch.multiprocessing as real_multiprocessing
import torch.utils._pytree as real_tree
from PIL import Image
from spawned import fail, leave, squares

import torchlike as ours
import torchlike.hub as hub
import torchlike.multiprocessing as multiprocessing
import torchlike.utils._pytree as our_tree
from torchlike.utils.hooks import RemovableHandle
from torchlike.utils.model_zoo import load_url
from torchlike.utils.tensorboard import SummaryWriter
from torchlike.utils.tensorboard._wire import crc32c

ROOT = Path(__file__).parent.parent
Point = collections.namedtuple("Point", "a b")


class OwnDict(dict):
    pass


class OwnPoint(Point):
    pass


ORDERED = OrderedDict([("z", 1), ("y", 2)])
DEFAULT = defaultdict(list, {"b": 1, "a": 2})
BOUNDED = deque([1, 2], maxlen=3)
TREE = {"b": [1, (2, None)], "a": Point(3, {"q": 4}), "o": ORDERED, "d": DEFAULT, "k": BOUNDED}


def add_one(x):
    return (x or 0) + 1


class Side(enum.Enum):
    LEFT = 1
    RIGHT = 2


def both_ways(p, spec):
    """The text of a structure, and what is read from it."""
    text = p.treespec_dumps(spec)
    return text, p.treespec_loads(text)


TREES = {
    "flatten": lambda p: p.tree_flatten(TREE),
    "round_trip": lambda p: p.tree_unflatten(*p.tree_flatten(TREE)),
    "map": lambda p: p.tree_map(add_one, TREE),
    "bounded": lambda p: p.tree_map(add_one, BOUNDED).maxlen,
    "factory": lambda p: p.tree_map(add_one, DEFAULT).default_factory,
    "leaf": lambda p: (p.tree_structure(3), p.tree_structure(3).is_leaf(), p.tree_structure(3).children()),
    "counts": lambda p: (lambda s: (s.num_nodes, s.num_leaves, s.num_children, s.type, s.context, s.child(1)))(
        p.tree_structure(TREE)),
    "subclasses": lambda p: (p.tree_leaves(OwnDict(a=1)), p.tree_leaves(OwnPoint(1, 2)), p.tree_leaves({1, 2})),
    "empty": lambda p: p.tree_flatten([[], {}, (), None]),
    "equal": lambda p: (p.tree_structure({"a": 1, "b": 2}) == p.tree_structure({"b": 1, "a": 2}),
                        p.tree_structure([1]) == p.tree_structure((1,)), p.tree_structure([1]) == p.tree_structure([2]),
                        hash(p.tree_structure([1, {"a": 2}])) == hash(p.tree_structure([2, {"a": 3}]))),
    "other_order": lambda p: p.tree_map(lambda *x: x, {"a": 1, "b": 2}, {"b": 3, "a": 4}),
    "other_dict": lambda p: p.tree_map(lambda *x: x, DEFAULT, {"a": 1, "b": 3}),
    "prefix": lambda p: p.tree_map(lambda a, b: (a, b), [1, 2], [(1, 2), 3]),
    "too_few_leaves": lambda p: p.tree_unflatten([1], p.tree_structure([1, 2])),
    "too_many_leaves": lambda p: p.tree_unflatten([1, 2], p.tree_structure(1)),
    "not_a_spec": lambda p: p.tree_unflatten([1], 3),
    "arity": lambda p: p.tree_map(max, [1, 2], [1]),
    "kind": lambda p: p.tree_map(max, [1, 2], (1, 2)),
    "keys": lambda p: p.tree_map(max, {"a": 1}, {"b": 1}),
    "not_a_tree": lambda p: p.tree_map(max, [1, 2], 3),
    "is_leaf": lambda p: p.tree_leaves([1, [2, 3]], is_leaf=lambda x: x == [2, 3]),
    "is_a_leaf": lambda p: (p.tree_is_leaf(3), p.tree_is_leaf([]), p.tree_is_leaf([], is_leaf=lambda x: True)),
    "only_type": lambda p: p.tree_map_only(int, add_one, [1, "a", 2.0]),
    "only_types": lambda p: p.tree_map_only((int, float), add_one, [1, "a", 2.0]),
    "only_union": lambda p: p.tree_map_only(int | float, add_one, [1, "a", 2.0]),
    "only_predicate": lambda p: p.tree_map_only(lambda x: x == 1, add_one, [1, "a", 2.0]),
    "only_bad": lambda p: p.tree_map_only(3, add_one, [1]),
    "quantified": lambda p: (p.tree_all(bool, [1, 0]), p.tree_any(bool, [1, 0]), p.tree_any_only(str, bool, [1, "a"]),
                             p.tree_all_only(int, lambda x: x > 0, [1, "a"])),
    "arguments": lambda p: p.arg_tree_leaves(1, [2], a=(3, 4)),
    "paths": lambda p: [(p.keystr(k), repr(k), x) for k, x in p.tree_leaves_with_path(TREE)],
    "map_paths": lambda p: p.tree_map_with_path(lambda k, x: p.keystr(k), TREE),
    "key_get": lambda p: [p.key_get(TREE, k) for k, _ in p.tree_leaves_with_path(TREE)],
    "broadcast": lambda p: p._broadcast_to_and_flatten([1, 2], p.tree_structure([[1, 2], 3])),
    "broadcast_not": lambda p: p._broadcast_to_and_flatten([1, 2, 3], p.tree_structure([[1, 2], 3])),
    "up_to": lambda p: p.tree_structure([1, 2]).flatten_up_to([(1, 2), 3]),
    "dumps": lambda p: p.treespec_dumps(p.tree_structure({"a": [1, 2], "b": (3, ORDERED, BOUNDED)})),
    "loads": lambda p: p.treespec_loads(p.treespec_dumps(p.tree_structure({"a": [1, 2], "b": (3, ORDERED)}))),
    "dumps_enum": lambda p: both_ways(p, p.TreeSpec(dict, [Side.LEFT, {"k": Side.RIGHT}], [p.treespec_leaf()] * 2)),
    "dumps_set": lambda p: p.treespec_dumps(p.TreeSpec(dict, {1, 2}, [p.treespec_leaf()] * 2)),
    "dumps_factory": lambda p: both_ways(p, p.tree_structure([DEFAULT, defaultdict(OrderedDict, {"x": [1]})])),
    "dumps_factory_none": lambda p: p.treespec_dumps(p.tree_structure(defaultdict(None, {"x": [1]}))),
    "dumps_unknown": lambda p: p.treespec_dumps(p.TreeSpec(Path, None, [])),
    "loads_unknown": lambda p: p.treespec_loads('[1, {"type": "nowhere", "context": "null", "children_spec": []}]'),
    "public": lambda p: sorted(p.__all__) and sorted(n for n in p.__all__ if hasattr(p, n)),
    "dumps_namedtuple": lambda p: p.treespec_dumps(p.tree_structure(Point(1, 2))),
    "print": lambda p: p.treespec_pprint(p.tree_structure({"a": [1, 2]})),
    "namedtuples": lambda p: (p.is_namedtuple(Point(1, 2)), p.is_namedtuple_class(OwnPoint), p.is_namedtuple((1,))),
}


def outcome(case, module):
    try:
        return repr(case(module))
    except Exception as error:
        return type(error).__name__, str(error)


@pytest.mark.parametrize("case", TREES.values(), ids=TREES)
def test_tree(case):
    assert outcome(case, our_tree) == outcome(case, real_tree)


def test_text_of_a_tree_runs_nothing():
    """A factory that the text names is a class of an imported module: nothing is imported, no function is taken."""
    text = our_tree.treespec_dumps(our_tree.tree_structure(DEFAULT))
    with pytest.raises(ModuleNotFoundError, match="not imported"):
        our_tree.treespec_loads(text.replace('"builtins"', '"antigravity"'))
    with pytest.raises(TypeError, match="no class"):
        our_tree.treespec_loads(text.replace('"builtins"', '"os"').replace('"list"', '"abort"'))


def test_arguments_of_nodes_are_containers():
    from torch.fx.immutable_collections import immutable_dict, immutable_list

    import torchlike.fx.immutable_collections as own
    found = []
    for p, some, named in ((our_tree, own.immutable_list, own.immutable_dict), (real_tree, immutable_list, immutable_dict)):
        tree = some([1, named({"a": 2, "b": some([3])})])
        found.append(repr((p.tree_flatten_with_path(tree), both_ways(p, p.tree_structure(tree)), p.tree_map(add_one, tree))))
    assert found[0] == found[1]


def test_registered_containers():
    class Pair:
        def __init__(self, x, y):
            self.x, self.y = x, y

    @dataclasses.dataclass
    class Data:
        a: int
        b: object = None

    results = []
    for p in (our_tree, real_tree):
        p.register_pytree_node(Pair, lambda c: ([c.x, c.y], "ctx"), lambda v, c: Pair(*v))
        p.register_dataclass(Data)
        with pytest.raises(ValueError, match="already registered") as twice:
            p.register_pytree_node(Pair, None, None)
        with pytest.raises(ValueError, match="flatten_with_keys_fn") as pathless:
            p.tree_leaves_with_path(Pair(1, 2))
        results.append((
            repr(p.tree_flatten(Pair(1, [2]))), vars(p.tree_map(add_one, Pair(1, 2))), str(twice.value),
            str(pathless.value), repr(p.tree_flatten(Data(1, [2]))), p.tree_map(add_one, Data(1)),
            p.keystr(p.tree_leaves_with_path(Data(1, [2]))[1][0]),
        ))
    assert results[0] == results[1]


def test_tree_of_tensors():
    tree = {"w": ours.ones(2), "b": [ours.zeros(1), 3]}
    doubled = ours.utils._pytree.tree_map_only(ours.Tensor, lambda t: t * 2, tree)
    assert doubled["w"].tolist() == [2, 2]
    assert doubled["b"][1] == 3
    assert our_tree.tree_leaves(ours.Size([1, 2])) == [1, 2]


@pytest.mark.parametrize("torch", [ours, real])
def test_removable_handle(torch):
    hooks, extra = OrderedDict(), OrderedDict()
    handle = torch.utils.hooks.RemovableHandle(hooks, extra_dict=[extra])
    hooks[handle.id] = extra[handle.id] = "hook"
    other = torch.utils.hooks.RemovableHandle(hooks)
    hooks[other.id] = "other"
    assert other.id == handle.id + 1
    again = pickle.loads(pickle.dumps(handle))
    assert again.id == handle.id
    again.remove()  # of copies of the dictionaries
    assert len(hooks) == 2
    with handle as entered:
        assert entered is handle
    handle.remove()
    assert (list(hooks.values()), dict(extra)) == (["other"], {})
    copied_hooks, copied = copy.deepcopy((hooks, other))
    copied.remove()
    assert (len(copied_hooks), len(hooks)) == (0, 1)
    with pytest.raises(TypeError, match="weak reference"):
        torch.utils.hooks.RemovableHandle({})


def test_handle_of_a_dead_owner():
    handle = RemovableHandle(OrderedDict())
    handle.remove()
    pickle.loads(pickle.dumps(handle)).remove()


@pytest.mark.parametrize("torch", [ours, real], ids=["torchlike", "torch"])
def test_hooks_are_not_saved(torch):
    """That is said, but of those that were marked."""
    @torch.utils.hooks.unserializable_hook
    def hook(g):
        return g
    x, p = torch.ones(3, requires_grad=True), torch.nn.Parameter(torch.ones(2))
    for t in (x, p):
        t.register_hook(hook)
        t.register_hook(print)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.save(p, io.BytesIO())
        torch.save(x, file := io.BytesIO())
    assert [str(w.message).split(" is expected")[0] for w in caught] == [f"backward hook {print!r} on tensor will not be serialized.  If this"]
    assert not torch.load(io.BytesIO(file.getvalue()))._backward_hooks


@pytest.mark.parametrize("torch", [ours, real], ids=["torchlike", "torch"])
def test_the_hooks_of_a_tensor(torch):
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    assert (x._backward_hooks, y._backward_hooks, torch.ones(1)._backward_hooks, torch.eye(2).to_sparse()._backward_hooks) == (None,) * 4
    first, second = x.register_hook(lambda g: g * 2), y.register_hook(lambda g: g * 3)
    assert (list(x._backward_hooks), list(y._backward_hooks)) == ([first.id], [second.id])
    first.remove()
    assert not x._backward_hooks
    x._backward_hooks = OrderedDict({7: lambda g: g * 5})
    y.sum().backward()
    assert x.grad.tolist() == [30.0] * 3
    x._backward_hooks = None
    later, seen = torch.ones(2), []
    later._backward_hooks = OrderedDict()  # of a tensor that requires no gradient yet
    later._backward_hooks["mine"] = seen.append
    (later * y.detach().sum() + x[:2]).sum().backward()
    assert (x._backward_hooks, list(later._backward_hooks), seen) == (None, ["mine"], [])
    (later.requires_grad_() * 3).sum().backward()
    assert [g.tolist() for g in seen] == [[3.0, 3.0]]


# -- TensorBoard: files are read here by what the format says, not by the code that wrote them ------------------------


def fields(data):
    """A protocol-buffer message as {field number: [values]}."""
    out, i = defaultdict(list), 0

    def varint():
        nonlocal i
        n = shift = 0
        while True:
            n |= (data[i] & 0x7F) << shift
            shift += 7
            i += 1
            if not data[i - 1] & 0x80:
                return n

    while i < len(data):
        key = varint()
        if key & 7 == 0:
            value = varint()
        elif key & 7 == 2:
            size = varint()
            value, i = data[i:i + size], i + size
        else:
            size, code = {1: (8, "<d"), 5: (4, "<f")}[key & 7]
            value, i = struct.unpack(code, data[i:i + size])[0], i + size
        out[key >> 3].append(value)
    return out


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def events(folder):
    """The events of the one file in a folder, checksums checked."""
    path, = [p for p in Path(folder).iterdir() if p.is_file()]
    assert path.name.startswith("events.out.tfevents.")
    data = path.read_bytes()
    while data:
        head, (size,) = data[:8], struct.unpack("<Q", data[:8])
        body = data[12:12 + size]
        assert struct.unpack("<I", data[8:12])[0] == masked(head)
        assert struct.unpack("<I", data[12 + size:16 + size])[0] == masked(body)
        data = data[16 + size:]
        yield fields(body)


def values(folder):
    """{tag: [(step, fields of the value)]}"""
    out = defaultdict(list)
    for event in events(folder):
        for summary in event[5]:
            for value in map(fields, fields(summary)[1]):
                out[value[1][0].decode()].append((event[2][0] if event[2] else 0, value))
    return out


def doubles(data):
    return np.frombuffer(data, "<f8").tolist()


def test_checksum():
    assert crc32c(b"123456789") == 0xE3069283  # the check value of CRC-32C


def test_scalars(tmp_path):
    with SummaryWriter(tmp_path, purge_step=7) as writer:
        for i in range(30):
            writer.add_scalar("loss", 1 / (i + 1), i)
        writer.add_scalar("tensor", ours.tensor(3.5) * 2, -2)
        writer.add_scalar("new", np.float32(2.5), new_style=True, double_precision=True)
        writer.add_scalars("group/x", {"p": 1.0, "q": 2}, 5)
    first, second, *_ = events(tmp_path)
    assert first[3] == [b"brain.Event:2"]
    assert (second[2], second[7]) == ([7], [b"\x08\x01"])
    got = values(tmp_path)
    assert [(s, v[2][0]) for s, v in got["loss"]] == [(i, np.float32(1 / (i + 1))) for i in range(30)]
    assert [(s, v[2][0]) for s, v in got["tensor"]] == [(2**64 - 2, 7.0)]
    assert doubles(fields(got["new"][0][1][8][0])[6][0]) == [2.5]
    assert values(tmp_path / "group_x_q")["group/x"][0][1][2] == [2.0]


def test_histogram(tmp_path):
    data = np.random.default_rng(0).normal(size=500)
    with SummaryWriter(tmp_path) as writer:
        writer.add_histogram("h", ours.tensor(data), 3)
        writer.add_histogram("edges", [0.5, 1.5, 1.6], bins=[0, 1, 2, 3])
        with pytest.raises(ValueError, match="no element"):
            writer.add_histogram("none", [])
    got = values(tmp_path)
    step, value = got["h"][0]
    h = fields(value[5][0])
    assert step == 3
    np.testing.assert_allclose([h[i][0] for i in range(1, 6)],
                               [data.min(), data.max(), 500, data.sum(), (data**2).sum()])
    limits, counts = doubles(h[6][0]), doubles(h[7][0])
    assert len(limits) == len(counts)
    assert (sum(counts), counts[0]) == (500, 0)
    for lower, upper, count in zip(limits, limits[1:], counts[1:]):
        assert count == ((data >= lower) & (data < upper)).sum()
    edges = fields(got["edges"][0][1][5][0])
    assert (doubles(edges[6][0]), doubles(edges[7][0])) == ([0, 1, 2], [0, 1, 2])


def test_images(tmp_path):
    rng = np.random.default_rng(0)
    colour = rng.random((3, 5, 7)).astype(np.float32)
    grey = rng.integers(0, 256, (5, 7), dtype=np.uint8)
    batch = rng.integers(0, 256, (10, 1, 4, 6), dtype=np.uint8)
    with SummaryWriter(tmp_path) as writer:
        writer.add_image("colour", ours.from_numpy(colour))
        writer.add_image("grey", grey, dataformats="HW")
        writer.add_images("batch", batch)
        with pytest.raises(AssertionError, match="size of input tensor and input format are different"):
            writer.add_image("bad", grey)
    got = {}
    for tag, ((_, value),) in values(tmp_path).items():
        image = fields(value[4][0])
        got[tag] = np.asarray(Image.open(io.BytesIO(image[4][0])))
        assert (image[1][0], image[2][0], image[3][0]) == got[tag].shape
    np.testing.assert_array_equal(got["colour"], (colour.transpose(1, 2, 0) * 255).astype(np.uint8))
    np.testing.assert_array_equal(got["grey"], np.stack([grey] * 3, -1))
    assert got["batch"].shape == (8, 48, 3)
    np.testing.assert_array_equal(got["batch"][4:8, 6:12, 1], batch[9, 0])
    assert not got["batch"][4:8, 12:].any()


def test_text_audio_and_hparams(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_text("notes", "hello *wörld*", 7)
        writer.add_audio("tone", np.sin(np.arange(100) / 9), sample_rate=8000)
        writer.add_hparams({"lr": 0.1, "name": "adam", "nesterov": True}, {"accuracy": 0.5}, run_name="run")
        with pytest.raises(TypeError, match="hparam_dict should be a dictionary"):
            writer.add_hparams([1], {})
    got = values(tmp_path)
    (step, note), = got["notes/text_summary"]
    assert (step, fields(note[8][0])[8]) == (7, ["hello *wörld*".encode()])
    assert fields(fields(note[9][0])[1][0])[1] == [b"text"]
    sound = fields(got["tone"][0][1][6][0])
    assert (sound[1], sound[3], sound[4][0][:4]) == ([8000.0], [100], b"RIFF")
    run = values(tmp_path / "run")
    assert run["accuracy"][0][1][2] == [0.5]
    plugin = fields(fields(run["_hparams_/session_start_info"][0][1][9][0])[1][0])
    assert plugin[1] == [b"hparams"]
    entries = map(fields, fields(fields(plugin[2][0])[3][0])[1])
    assert {e[1][0]: dict(fields(e[2][0])) for e in entries} == {
        b"lr": {2: [0.1]}, b"name": {3: [b"adam"]}, b"nesterov": {2: [1.0]}}


def test_events_survive_an_exit_without_close(tmp_path):
    source = f"""
from torchlike.utils.tensorboard import SummaryWriter
writer = SummaryWriter({str(tmp_path)!r})
writer.add_scalar("x", 1.5, 3)
"""
    subprocess.run([sys.executable, "-c", source], check=True, env=python_env())
    assert values(tmp_path)["x"][0][1][2] == [1.5]


def test_closed_writer_opens_another_file(tmp_path):
    writer = SummaryWriter(tmp_path)
    writer.close()
    writer.add_scalar("x", 1)
    writer.close()
    assert len(list(tmp_path.iterdir())) == 2


# -- hub, multiprocessing, the rest ----------------------------------------------------------------------------------


def python_env():
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(ROOT)]))}


@pytest.fixture
def repository(tmp_path):
    (tmp_path / "hubconf.py").write_text(
        "dependencies = ['numpy']\nfrom neighbour_of_hubconf import make\n"
        "def small(n=2, *, k=1):\n    'A small thing.'\n    return make(n, k)\n")
    (tmp_path / "neighbour_of_hubconf.py").write_text("def make(n, k): return n, k\n")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "hubconf.py").write_text("dependencies = ['no_such_package_a', 'numpy']\ndef a(): pass\n")
    return tmp_path


@pytest.mark.parametrize("torch", [ours, real])
def test_hub_from_a_folder(torch, repository):
    path = list(sys.path)
    assert torch.hub.load(str(repository), "small", 5, k=7, source="local") == (5, 7)
    assert sys.path == path
    for args, options, kind, text in [
        ((str(repository), "large"), {"source": "local"}, RuntimeError, "Cannot find callable large in hubconf"),
        ((str(repository), 3), {"source": "local"}, ValueError, "Invalid input: model should be a string"),
        ((str(repository), "small"), {"source": "ftp"}, ValueError, 'Unknown source: "ftp"'),
        ((str(repository / "bad"), "a"), {"source": "local"}, RuntimeError, "Missing dependencies: no_such_package_a"),
        ((str(repository / "none"), "a"), {"source": "local"}, FileNotFoundError, "hubconf.py"),
    ]:
        with pytest.raises(kind, match=text):
            torch.hub.load(*args, **options)


@pytest.mark.parametrize("torch", [ours, real])
def test_hub_from_the_cache(torch, repository, tmp_path_factory, monkeypatch, capsys):
    cache = tmp_path_factory.mktemp("hub")
    monkeypatch.setenv("TORCH_HOME", str(cache))
    (cache / "hub").mkdir()
    (cache / "hub" / "someone_models_v1").symlink_to(repository)
    assert torch.hub.load("someone/models:v1", "small", trust_repo=True) == (2, 1)
    assert "Using cache found in" in capsys.readouterr().err
    assert torch.hub.list("someone/models:v1") == ["make", "small"]  # trusted now
    assert torch.hub.help("someone/models:v1", "small") == "A small thing."


def test_hub_asks_before_it_runs_strangers_code(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    asked = []
    monkeypatch.setattr("builtins.input", lambda text: asked.append(text) or "n")
    with pytest.raises(RuntimeError, match="not trusted"):
        hub.load("someone/models:v1", "small")
    assert "Do you trust this repository" in asked[0]


def test_hub_without_network(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")  # nobody listens
    with pytest.raises(RuntimeError, match="no internet connection and the repo could not be found in the cache"):
        hub.load("someone/models", "small", trust_repo=True)
    with pytest.raises(RuntimeError, match="No network"):
        hub.load("someone/models:v1", "small", trust_repo=True)
    with pytest.raises(RuntimeError, match="No network"):
        hub.load("someone/models:v1", "small", trust_repo=True, skip_validation=True)
    with pytest.raises(ValueError, match="owner/name"):
        hub.load("models", "small", trust_repo=True)


def test_model_zoo(tmp_path):
    source = tmp_path / "weights.pt"
    real.save({"w": real.arange(3)}, source)
    loaded = load_url(source.as_uri(), str(tmp_path / "cache"), progress=False)
    assert loaded["w"].tolist() == [0, 1, 2]
    assert (tmp_path / "cache" / "weights.pt").exists()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_spawn_raises_what_failed(method):
    with pytest.raises(multiprocessing.ProcessRaisedException) as caught:
        multiprocessing.start_processes(fail, ("oops" * 50_000,), nprocs=2, start_method=method)
    text = str(caught.value)
    assert text.startswith("\n\n-- Process 1 terminated with the following error:\nTraceback (most recent call last):")
    assert text.endswith("ValueError: " + "oops" * 50_000 + "\n")
    assert caught.value.error_index == 1


@pytest.mark.parametrize("code", [4, 0])
def test_spawn_exit_codes_are_torchs(code):
    results = []
    for module in (multiprocessing, real_multiprocessing):
        try:
            results.append(module.start_processes(leave, (code,), nprocs=1, start_method="fork"))
        except module.ProcessExitedException as error:
            results.append((str(error), error.exit_code, error.error_index, error.signal_name))
    assert results[0] == results[1]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_tensors_through_a_queue(method):
    queue = multiprocessing.get_context(method).SimpleQueue()
    context = multiprocessing.start_processes(squares, (queue,), nprocs=2, join=False, start_method=method)
    got = dict(queue.get() for _ in range(2))
    while not context.join(timeout=30):
        pass
    assert {i: t.tolist() for i, t in got.items()} == {0: [0, 1, 4], 1: [1, 2, 5]}


def test_forked_process_computes_beside_xla():
    table = (ours.ones(40, 40) @ ours.ones(40, 40)).exp()  # pending when the process is forked
    context = multiprocessing.get_context("fork")
    ours_end, theirs = context.Pipe()

    def child():
        theirs.send(float((table.log() @ ours.ones(40)).sum()))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # JAX warns of any fork
        process = context.Process(target=child)
        process.start()
    assert ours_end.poll(30)
    assert ours_end.recv() == pytest.approx(40 * 40 * 40, rel=1e-4)
    process.join()


def test_multiprocessing_names():
    assert set(real_multiprocessing.__all__) <= set(dir(multiprocessing))
    assert multiprocessing.get_all_sharing_strategies() == real_multiprocessing.get_all_sharing_strategies()
    multiprocessing.set_sharing_strategy("file_system")
    assert multiprocessing.get_sharing_strategy() == "file_system"
    with pytest.raises(AssertionError, match="invalid sharing strategy 'x'"):
        multiprocessing.set_sharing_strategy("x")


def test_dlpack():
    t = ours.arange(6.0).view(2, 3)
    assert ours.utils.dlpack.from_dlpack(np.arange(3.0)).tolist() == [0, 1, 2]
    assert ours.utils.dlpack.from_dlpack(t).tolist() == t.tolist()
    assert ours.utils.dlpack.from_dlpack(ours.utils.dlpack.to_dlpack(t)).tolist() == t.tolist()


def test_collect_env():
    command = [sys.executable, "-m", "torchlike.utils.collect_env"]
    env = {**python_env(), "XLA_FLAGS": ""}
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    out = done.stdout
    for word in ("torchlike:", "jax:", "numpy:", "JAX devices:", "cpu:0", "XLA_FLAGS:"):
        assert word in out


def test_collect_env_of_commands():
    import torch.utils.collect_env as theirs
    env = ours.utils.collect_env
    for command in ("echo a; echo b 1>&2; exit 3", "printf 'gcc 12 \nmore\n'", ["echo", "x y"]):
        assert env.run(command) == theirs.run(command)
    for command in ("printf 'gcc 12 \nmore\n'", "echo gcc 1; exit 1"):
        assert env.run_and_read_all(env.run, command) == theirs.run_and_read_all(theirs.run, command)
        assert env.run_and_return_first_line(env.run, command) == theirs.run_and_return_first_line(theirs.run, command)
        for pattern in ("gcc (.*)", "clang (.*)"):
            assert env.run_and_parse_first_match(env.run, command, pattern) == theirs.run_and_parse_first_match(theirs.run, command, pattern)
    for name in ("get_gcc_version", "get_gpu_info", "get_nvidia_driver_version"):
        assert getattr(env, name)(env.run) == getattr(theirs, name)(theirs.run)
    said = {"gcc --version": "gcc (Debian) 12.2.0", "nvidia-smi -L": "GPU 0: NVIDIA H100 (UUID: GPU-1a2b)", "nvidia-smi": "| Driver Version: 570.1 |"}
    for name in ("get_gcc_version", "get_gpu_info", "get_nvidia_driver_version"):  # of a machine that has them
        assert getattr(env, name)(lambda command: (0, said[command], "")) == getattr(theirs, name)(lambda command: (0, said[command], ""))
    assert env.get_platform() == theirs.get_platform()
    assert env.get_cpu_info(env.run).split("\n")[0] == theirs.get_cpu_info(theirs.run).split("\n")[0]
