# ruff: noqa: UP006, UP035  (the programs name types so)
"""Scripted modules and functions as files: real torch loads what torchlike compiled, and computes what the program does; torchlike reads it back."""
import copy
import io
import itertools
import linecache
import math
import pickle
import sys
import types
from enum import Enum
from typing import Any, Dict, Final, List, NamedTuple, Optional, Tuple, Union

import numpy as np
import pytest
import script_programs as programs
import torch

import torchlike

pytestmark = pytest.mark.filterwarnings("ignore")
_numbers = itertools.count()
X = np.array([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]], np.float32)


def defined(source, lib):
    """The names of a program's source, as of a file of its own."""
    name = f"/script_program_{next(_numbers)}.py"
    linecache.cache[name] = len(source), None, source.splitlines(True), name
    names = {"torch": lib, "nn": lib.nn, "F": lib.nn.functional, "Tensor": lib.Tensor, "math": math, "List": List, "Dict": Dict, "Optional": Optional, "Tuple": Tuple,
             "Union": Union, "Any": Any, "Final": Final, "NamedTuple": NamedTuple, "Enum": Enum, "BroadcastingList2": lib.jit.annotations.BroadcastingList2,
             "_pair": lib.nn.modules.utils._pair, "__name__": "program"}
    module = sys.modules["program"] = types.ModuleType("program")  # torch looks there for the source of a class
    module.__dict__.update(names, __file__=name)
    exec(compile(source, name, "exec"), module.__dict__)
    return module.__dict__


def given(args, lib):
    """Arguments, where strings of x and w stand for tensors."""
    x = lib.from_numpy(X.copy())
    made = {"x": x, "-x": -x, "x>0": x > 0, "w": lib.from_numpy(np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)), "image": lib.linspace(-1, 1, 384).reshape(2, 3, 8, 8),
            "ids": lib.tensor([[0, 3, 2], [1, 1, 4]]), "sequence": lib.linspace(-1, 1, 24).reshape(3, 2, 4),
            "lengths": lib.tensor([2, 3]), "state": (lib.ones(4, 2, 3), lib.zeros(4, 2, 3)), "padding": lib.tensor([[False, False, True], [False, True, True]])}
    return [made[a] if isinstance(a, str) and a in made else type(a)(a) if isinstance(a, (list, dict)) else a for a in args]


def same(a, b):
    if hasattr(a, "detach"):
        assert str(a.dtype).rpartition(".")[2] == str(b.dtype).rpartition(".")[2]
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-4, atol=1e-5)
    elif isinstance(a, dict):
        assert a.keys() == b.keys()
        for k in a:
            same(a[k], b[k])
    elif isinstance(a, (list, tuple)):
        assert isinstance(b, (list, tuple)) and len(a) == len(b)
        for x, y in zip(a, b):
            same(x, y)
    else:
        assert type(a) is type(b) and a == pytest.approx(b), (a, b)


def saved(m):
    stream = io.BytesIO()
    torchlike.jit.save(torchlike.jit.script(m), stream)
    return stream


def loaded(stream, lib):
    stream.seek(0)
    return lib.jit.load(stream)


@pytest.mark.parametrize("name", programs.FUNCTIONS)
def test_functions(name):
    source, *calls = programs.FUNCTIONS[name]
    f, real = defined(source, torchlike)["f"], torch.jit.script(defined(source, torch)["f"])
    stream = saved(f)
    for reader in (torch, torchlike):
        made = loaded(stream, reader)
        for args in calls:
            want = real(*given(args, torch))
            same(made(*given(args, reader)), want)


def of_class(source, lib, *args):
    lib.manual_seed(0)
    return defined(source, lib)["M"](*args)


@pytest.mark.parametrize("name", programs.MODULES)
def test_modules(name):
    source, *calls = programs.MODULES[name]
    for training in (True, False):
        m, real = of_class(source, torchlike).train(training), of_class(source, torch).train(training)
        real.load_state_dict({k: torch.from_numpy(v.numpy().copy()) for k, v in m.state_dict().items()})
        stream, state = saved(m), torch.jit.script(real).state_dict()
        made = [loaded(stream, torch), loaded(stream, torchlike)]
        for args in calls:
            want = real(*given(args, torch))
            for reader, module in zip((torch, torchlike), made):
                same(module(*given(args, reader)), want)
        for module in made:
            assert module.training == training and module.original_name == "M"
            assert list(module.state_dict()) == list(state)
            assert {k: p.requires_grad for k, p in module.named_parameters()} == {k: p.requires_grad for k, p in real.named_parameters()}
            for k, v in state.items():
                np.testing.assert_allclose(module.state_dict()[k].numpy(), v.numpy(), rtol=1e-4, atol=1e-6)


def test_what_a_module_holds():
    """Attributes and constants are there in the file's module, exported methods too, and not what was marked as Python's."""
    source, args = programs.MODULES["attributes"]
    m, real = of_class(source, torchlike), torch.jit.script(of_class(source, torch))
    stream = saved(m)
    module = loaded(stream, torch)
    for name in ("width", "depth", "sizes", "scale", "flag", "word", "names", "table", "cache", "pair", "nothing", "count", "kind"):
        assert getattr(module, name) == getattr(real, name), name
    assert torch.equal(module.hidden, torch.ones(2)) and module.bias is None
    same(module.other(torch.ones(3), k=3), real.other(torch.ones(3), k=3))
    assert module.count == real.count == 2
    assert not hasattr(module, "not_there") and not hasattr(module, "in_python")


def test_parts_under_two_names():
    """Other than in Python a module counts under each of its names, named_buffers() gives the module's own, absent ones too, and neither takes arguments."""
    source = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.BatchNorm1d(3), nn.Tanh())
        self.second = self.first
        self.register_buffer("own", torch.ones(3))
        self.register_buffer("absent", None)

    def forward(self, x):
        names = ""
        for name, m in self.named_modules():
            names += name + ";"
        for name, value in self.named_buffers():
            names += name + (" is None;" if value is None else ";")
        return names, len(self.modules()), len(self.first.children())
"""
    x = torch.ones(2, 3)
    want = torch.jit.script(of_class(source, torch))(x)
    stream = saved(of_class(source, torchlike))
    assert loaded(stream, torch)(x) == loaded(stream, torchlike)(torchlike.ones(2, 3)) == want
    for lib in (torch, torchlike):
        with pytest.raises(RuntimeError, match="named_modules method does not accept any arguments"):
            saved_by = lib.jit.script(of_class(source.replace("self.named_modules()", "self.named_modules(prefix='a')"), lib))
            lib.jit.save(saved_by, io.BytesIO())


@pytest.mark.parametrize("layer", [*programs.LAYERS, *programs.IMAGE_LAYERS])
def test_layers(layer):
    args = ["image" if layer in programs.IMAGE_LAYERS else "x"]
    m = eval(f"nn.{layer}", {"nn": torchlike.nn})
    for training in (True, False):
        stream = saved(m.train(training))
        before = {k: v.clone() for k, v in m.state_dict().items()}
        want, after = m(*given(args, torchlike)), {k: v.clone() for k, v in m.state_dict().items()}
        for reader in (torch, torchlike):
            module = loaded(stream, reader)
            same(module(*given(args, reader)), want)
            assert list(module.state_dict()) == list(after)
            for k, v in after.items():
                np.testing.assert_allclose(module.state_dict()[k].numpy(), v.numpy(), rtol=1e-5, atol=1e-6)
        m.load_state_dict(before)


def place(error):
    """The class of an error, by its name: torchlike has classes of its own."""
    return next(c.__name__ for c in type(error).__mro__ if c.__name__ in ("UnsupportedNodeError", "NotSupportedError", "FrontendError", "RuntimeError", "Exception"))


@pytest.mark.parametrize("name", programs.ERRORS)
def test_what_cannot_be_compiled(name):
    source = programs.ERRORS[name]
    with pytest.raises(Exception) as real:  # noqa: PT011
        torch.jit.script(defined(source, torch)["f"])
    stream = io.BytesIO()
    f = torchlike.jit.script(defined(source, torchlike)["f"])
    with pytest.raises(Exception) as own:  # noqa: PT011
        torchlike.jit.save(f, stream)
    assert place(own.value) == place(real.value), (own.value, real.value)
    assert not stream.getvalue() and 'script_program_' in str(own.value)


def test_what_is_scripted():
    """A module stays what it is and is a ScriptModule besides; a function becomes a ScriptFunction."""
    m = torchlike.nn.Linear(2, 2)
    assert not isinstance(m, torchlike.jit.ScriptModule) and not hasattr(m, "save") and not hasattr(m, "code")
    made = torchlike.jit.script(m)
    assert made is m and isinstance(m, torchlike.jit.ScriptModule) and isinstance(m, torchlike.nn.Linear)
    assert made.original_name == "Linear" and "torch.linear(input, self.weight, self.bias)" in made.code
    assert not isinstance(torchlike.nn.Linear(2, 2), torchlike.jit.ScriptModule) and not isinstance(3, torchlike.jit.ScriptModule)
    f = torchlike.jit.script(defined(programs.FUNCTIONS["in place"][0], torchlike)["f"])
    assert isinstance(f, torchlike.jit.ScriptFunction) and torchlike.jit.script(f) is f and f.name == f.__name__ == "f" and f.qualified_name == "__torch__.program.f"
    assert f.code.startswith("def f(x: Tensor, n: int) -> Tuple[Tensor, int, List[int]]:")
    assert torch.jit.load(io.BytesIO(f.save_to_buffer()))(torch.ones(2), 3)[1] == 14


def test_files(tmp_path):
    m = torchlike.jit.script(torchlike.nn.Sequential(torchlike.nn.Linear(2, 2), torchlike.nn.ReLU()))
    m.save(str(tmp_path / "m.pt"), _extra_files={"note": "hello"})
    extra = {"note": ""}
    assert torch.jit.load(tmp_path / "m.pt", _extra_files=extra)(torch.ones(1, 2)).shape == (1, 2) and extra["note"] == b"hello"
    torchlike.jit.save(m, tmp_path / "again.pt")
    assert isinstance(torchlike.jit.load(tmp_path / "again.pt"), torchlike.jit.ScriptModule)


def test_errors_name_the_line():
    f = torchlike.jit.script(defined(programs.ERRORS["a sum with a string"], torchlike)["f"])
    with pytest.raises(RuntimeError, match=r'line 3\n    return x \+ "a"\n           ~~~~~~~ <--- HERE'):
        f.save_to_buffer()


def test_what_would_be_read_otherwise_is_refused():
    """What PyTorch compiles and torchlike cannot write so that it means the same."""
    for source, what in (("def f(x, ops: int):\n    return x + ops\n", "an argument called ops"),
                         ("def p(x) -> Tuple[int, int]:\n    return 1, 2\n\n\ndef f(x):\n    return x.sum() > 0 and 1 in p(x)\n", "cannot be taken apart")):
        f = torchlike.jit.script(defined(source, torchlike)["f"])
        with pytest.raises(Exception, match=what):
            f.save_to_buffer()


def test_older_modules():
    """A ScriptModule written as one."""
    source = """
class M(torch.jit.ScriptModule):
    __constants__ = ["n"]

    def __init__(self):
        super().__init__()
        self.n, self.layers = 2, nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))

    @torch.jit.script_method
    def forward(self, x):
        return self.twice(self.layers(x)) * self.n

    @torch.jit.script_method
    def twice(self, x):
        return x * 2
"""
    m = of_class(source, torchlike)
    stream = io.BytesIO()
    m.save(stream)
    for reader in (torch, torchlike):
        made = loaded(stream, reader)
        same(made(*given(["x"], reader)), m(*given(["x"], torchlike)))
        same(made.twice(*given(["x"], reader)), given(["x"], torchlike)[0] * 2)


def test_alike_modules_share_a_class():
    stream = saved(torchlike.nn.Sequential(*[torchlike.nn.Sequential(torchlike.nn.Linear(3, 3), torchlike.nn.ReLU()) for _ in range(4)], torchlike.nn.Linear(3, 2)))
    kinds = [str(m._c._type()) for m in loaded(stream, torch).modules()]
    assert len(kinds) == 14 and len(set(kinds)) == 5  # the whole, one pair for all, its layer and its activation, the last layer


@pytest.mark.parametrize("name", ["attributes", "containers", "enumerations", "tagger"])
def test_what_was_loaded_is_saved_again(name):
    """From PyTorch's file and from torchlike's, with what has changed since."""
    source, args, *_ = programs.MODULES[name]
    first = io.BytesIO()
    torch.jit.save(torch.jit.script(of_class(source, torch)), first)
    for stream in first, saved(of_class(source, torchlike)):
        m = loaded(stream, torchlike).eval()
        with torchlike.no_grad():
            for p in m.parameters():
                p.mul_(2)
        again = io.BytesIO()
        m.save(again, _extra_files={"note": "again"})
        want = m(*given(args, torchlike))
        for reader in (torch, torchlike):
            made = loaded(again, reader)
            same(made(*given(args, reader)), want)
            assert not made.training and list(made.state_dict()) == list(m.state_dict()) and made.original_name == "M"


def test_scripted_functions_are_found_where_they_are():
    """Copies and pickles of what holds one hold the same one, as with functions."""
    names = defined("@torch.jit.script\ndef f(x):\n    return x * 2\n", torchlike)
    f = names["f"]
    assert copy.deepcopy([f])[0] is f and pickle.loads(pickle.dumps(f)) is f
    assert torchlike.compile(lambda x: f(x) + 1)(torchlike.ones(2)).tolist() == torchlike.func.vmap(f)(torchlike.ones(2)).add(1).tolist() == [3.0, 3.0]


@pytest.mark.parametrize("lib", [torchlike, torch], ids=["torchlike", "torch"])
def test_a_file_is_the_old_one_or_whole(lib, tmp_path):
    path = tmp_path / "m.pt"
    lib.jit.script(lib.nn.Linear(2, 3)).save(str(path))
    before = path.read_bytes()
    with pytest.raises(RuntimeError, match="Parent directory"):
        lib.jit.script(lib.nn.Linear(2, 3)).save(str(tmp_path / "none" / "m.pt"))
    if lib is torchlike:  # torch compiles at `script`
        with pytest.raises(RuntimeError):
            torchlike.jit.script(defined("def f(x):\n    return x + not_there\n", torchlike)["f"]).save(str(path))
    assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == ["m.pt"]
