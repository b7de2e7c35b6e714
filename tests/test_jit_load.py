# ruff: noqa: UP006, UP035, UP045  (TorchScript knows types by these names)
"""torch.jit.load of archives that real torch.jit.save wrote: the same modules, the same results, and nothing in the file runs as Python."""
import io
import math
import warnings
import zipfile
from enum import Enum
from typing import Dict, List, NamedTuple, Optional, Tuple

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import torchlike

pytestmark = pytest.mark.filterwarnings("ignore")


class Pair(NamedTuple):
    a: torch.Tensor
    n: int


class Counter:
    def __init__(self, start: int):
        self.n = start

    def up(self, k: int) -> int:
        self.n += k
        return self.n


class Color(Enum):
    RED = 1
    BLUE = 2


class Branches(nn.Module):
    """Python around tensors: branches, loops, optional arguments, dictionaries."""

    scale: float

    def __init__(self):
        super().__init__()
        self.conv, self.bn, self.fc, self.drop = nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.Linear(64, 5), nn.Dropout(0.5)
        self.scale, self.names = 0.5, ["a", "b"]
        self.blocks = nn.ModuleList([nn.Linear(5, 5) for _ in range(2)])
        self.register_buffer("off", torch.ones(5))

    def helper(self, x, k: int):
        out = []
        for i in range(1, k, 2):
            out.append(x * i)
        return torch.stack(out).sum(0)

    def forward(self, x, flag: bool = True, opt: Optional[torch.Tensor] = None) -> Dict[str, torch.Tensor]:
        x = F.max_pool2d(F.relu(self.bn(self.conv(x))), 2)
        x = self.drop(self.fc(x.view(x.size(0), -1)))
        for b in self.blocks:
            x = b(x)
        if flag:
            x = x * self.scale + self.off
        else:
            x = x[:, 1:3]
        if opt is not None:
            x = x + opt
        i = 0
        while i < 3:
            i += 1
            if i == 2:
                break
        assert x.dim() == 2, "needs two"
        return {"x": x + i, "y": self.helper(x, 4), "z": F.softmax(x, dim=-1, dtype=torch.float64)}


class Objects(nn.Module):
    """TorchScript's own classes, tuples with names, enumerations, strings and whole numbers; state that a call changes."""

    count: int

    def __init__(self):
        super().__init__()
        self.count, self.color, self.blue, self.table = 0, Color.BLUE, Color.BLUE, {"a": 1, "b": 2}
        self.tied = nn.Linear(3, 3)
        self.again = self.tied
        self.register_buffer("seen", torch.zeros(1))

    @torch.jit.export
    def other(self, x: torch.Tensor, k: int = 2) -> torch.Tensor:
        return x * k

    def forward(self, x: torch.Tensor, words: List[str]) -> Tuple[Pair, Dict[str, int], str, List[int]]:
        self.count += 1
        self.seen += 1
        found: List[int] = []
        for w in words:
            if w in self.table:
                found.append(self.table[w])
            else:
                found.append(-1)
        for i, w in enumerate(words):
            if i % 2 == 0 and not w.startswith("q"):
                found.append(i // 2 + int(2 ** 2 + round(2.5) + math.floor(-2.5) - (-7 % 3)))
        y = self.other(self.again(self.tied(x)), k=3).to(torch.float64).sum(dim=-1, keepdim=True)
        y = torch.cat([y, y.mean(0, keepdim=True)], 0)
        y[0] = 5.0
        mask = y > 0
        y = torch.where(mask, y, -y).masked_fill(mask, 2.0) + F.softplus(y)
        if self.color == self.blue:
            y = y + 1
        c = Counter(3)
        text = "{}-{}".format(c.up(2), len(words)) + "|".join(words).upper()  # noqa: UP032
        t = torch.zeros(2, 3, dtype=torch.int64, device=x.device)
        t[0, 1] = 7
        z = torch.arange(0, 10, 2)[-2:].float() / 3 % 2
        parts = [y.reshape(-1)[::2], y.topk(1, dim=0)[0].view(-1), z.double(), t.view(-1).double()]
        return Pair(torch.cat(parts), self.count), {w: len(w) for w in words}, text, [q * 2 for q in found]


class Vision(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 6, 3, stride=2, groups=3), nn.ConvTranspose2d(6, 4, 2, stride=2)
        self.gn, self.inn, self.p = nn.GroupNorm(2, 4), nn.InstanceNorm2d(4, affine=True), nn.PReLU(4)

    def forward(self, x):
        x = self.p(self.inn(self.gn(self.b(F.hardswish(self.a(x))))))
        x = F.interpolate(F.interpolate(x, scale_factor=2.0, mode="nearest"), size=[7, 9], mode="bilinear", align_corners=False)
        x = F.pad(F.avg_pool2d(x, 2) + F.adaptive_avg_pool2d(x, (3, 4)), (1, 1, 0, 2))
        x = F.leaky_relu(x, 0.1) + F.elu(x) + F.silu(x) + torch.sigmoid(x) + F.hardtanh(x)
        m = F.adaptive_max_pool2d(x, 2)
        x = F.log_softmax(x, dim=1).permute(0, 2, 3, 1).contiguous()
        n, h, w, c = x.shape
        x = x.view(n, h * w, c).transpose(1, 2).chunk(2, 1)[0]
        q, v = x.split([1, 1], 1)
        losses = F.mse_loss(q, v), F.cross_entropy(q[:, 0], torch.zeros(2, dtype=torch.long)), F.smooth_l1_loss(q, v, reduction="sum")
        return (torch.einsum("bij,bkj->bik", q, v), m.flatten(1), F.normalize(q, dim=-1).norm(2.0, -1), x.std(), F.one_hot(torch.arange(3), 4),
                torch.stack([q, v]).max(0)[0].argmax(-1), x.type_as(q).clamp(min=0), x.unsqueeze(0).squeeze(), torch.full((2,), 3.0), losses)


class InPlace(nn.Module):
    """Activations that write into their argument, as EfficientNet's and MobileNet's, and layers that are other operators of aten than functions."""

    def __init__(self):
        super().__init__()
        kinds = (nn.SiLU, nn.Hardswish, nn.Hardsigmoid, nn.Mish, nn.ELU, nn.CELU, nn.SELU, nn.ReLU6)
        self.acts, self.shrink = nn.ModuleList([kind(inplace=True) for kind in kinds]), nn.Softshrink()
        self.unfold, self.fold, self.pool = nn.Unfold(2, stride=2), nn.Fold((8, 8), 2, stride=2), nn.FractionalMaxPool2d(2, 3)

    def forward(self, x):
        out = [self.shrink(x), self.unfold(x), self.fold(self.unfold(x))]
        for act in self.acts:
            y = x * 1
            act(y)
            out.append(y)
        return out, self.pool(x).shape


class Sequences(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.l, self.g = nn.Embedding(10, 6), nn.LSTM(6, 7, batch_first=True), nn.GRU(7, 5, 2, bidirectional=True)
        self.m, self.d = nn.MultiheadAttention(10, 2), nn.TransformerEncoder(nn.TransformerEncoderLayer(10, 2, 12, batch_first=True), 1)

    def forward(self, x):
        y, (h, c) = self.l(self.e(x))
        y, k = self.g(y)
        z, w = self.m(y, y, y)
        return self.d(z), w, h, c, k


@torch.jit.script
def scripted(x, n: int):
    r: List[float] = []
    for i in range(n):
        r.append(float(x[i].item()))
    return torch.tensor(r), sum(r), [q * 2 for q in r]


def saved(make, trace=None):
    """An archive's bytes: of a module or function, scripted, or traced with arguments."""
    torch.manual_seed(0)
    made = make() if isinstance(make, type) else make
    made = made.eval() if isinstance(made, nn.Module) else made
    if trace is not None:
        made = torch.jit.trace(made, trace, check_trace=False)
    elif not isinstance(made, torch.jit.ScriptFunction):
        made = torch.jit.script(made)
    stream = io.BytesIO()
    torch.jit.save(made, stream)
    return stream.getvalue()


def loaded(data):
    return torch.jit.load(io.BytesIO(data)), torchlike.jit.load(io.BytesIO(data))


def ours(x):
    if isinstance(x, torch.Tensor):
        return torchlike.tensor(x.numpy())
    return type(x)(map(ours, x)) if isinstance(x, (tuple, list)) else x


def leaves(x):
    if isinstance(x, (tuple, list)):
        return [z for y in x for z in leaves(y)]
    if isinstance(x, dict):
        return [*x, *leaves(list(x.values()))]
    return [x]


def check(theirs, mine):
    assert len(leaves(theirs)) == len(leaves(mine))
    for a, b in zip(leaves(theirs), leaves(mine)):
        if isinstance(a, torch.Tensor):
            assert str(a.dtype) == str(b.dtype) and a.shape == tuple(b.shape) and a.requires_grad == b.requires_grad
            np.testing.assert_allclose(b.detach().numpy(), a.detach().numpy(), rtol=1e-4, atol=1e-5)
        else:
            assert a == b and type(a) is type(b)


IMAGE, WORDS = torch.linspace(-1, 1, 128).view(2, 1, 8, 8), torch.tensor([[1, 5, 9], [0, 2, 2]])
CASES = {
    "branches": (Branches, None, [(IMAGE,), (IMAGE, False), (IMAGE, True, torch.arange(5.0))]),
    "objects": (Objects, None, [(torch.eye(3), ["a", "q", "zz"]), (torch.eye(3), ["b"])]),
    "vision": (Vision, None, [(torch.linspace(-1, 1, 486).view(2, 3, 9, 9),)]),
    "vision traced": (Vision, (torch.rand(2, 3, 9, 9),), [(torch.linspace(-1, 1, 486).view(2, 3, 9, 9),)]),
    "in place": (InPlace, None, [(IMAGE * 4,)]),
    "sequences": (Sequences, None, [(WORDS,)]),
    "sequences traced": (Sequences, (WORDS,), [(WORDS,)]),
    "function": (scripted, None, [(torch.arange(4.0), 3)]),
    "function traced": (lambda a, b: (a @ b).clamp(0, 1)[:, None] * 2.5, (torch.ones(2, 2), torch.ones(2, 2)), [(torch.eye(2), torch.ones(2, 2) / 3)]),
}


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_same_module_same_results(name, grad):
    make, trace, calls = CASES[name]
    theirs, mine = loaded(saved(make, trace))
    assert str(theirs) == str(mine) and list(theirs.state_dict()) == list(mine.state_dict()) and theirs.training == mine.training
    assert [n for n, _ in theirs.named_parameters()] == [n for n, _ in mine.named_parameters()]
    assert isinstance(mine, torchlike.jit.ScriptModule) and mine.original_name == theirs.original_name
    for arguments in calls:
        with torch.set_grad_enabled(grad), torchlike.set_grad_enabled(grad):
            check(theirs(*arguments), mine(*ours(arguments)))
    check(theirs.state_dict(), mine.state_dict())


def test_it_trains_and_its_attributes_are_there():
    data = saved(Branches)
    results = []
    for torch_, module in zip((torch, torchlike), loaded(data)):
        module.train()
        torch_.manual_seed(3)
        image = torch_.ones(2, 1, 8, 8)
        optimizer = torch_.optim.SGD(module.parameters(), lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            module(image)["x"].sum().backward()
            optimizer.step()
        results.append((module.state_dict(), module.scale, module.names, module.conv.stride,
                        module.conv.weight.requires_grad, [n for n, _ in module.named_modules()]))
    check(*results)


def test_shared_parameters_stay_shared():
    _, mine = loaded(saved(Objects))
    assert mine.again.weight is mine.tied.weight
    check(torch.ones(2) * 6, mine.other(torchlike.ones(2) * 2, k=3))


def test_extra_files_and_map_location(tmp_path):
    stream = io.BytesIO()
    torch.jit.save(torch.jit.script(nn.Linear(2, 2)), stream, _extra_files={"notes.txt": "hello"})
    extra = {"notes.txt": "", "absent": ""}
    path = tmp_path / "a.pt"
    path.write_bytes(stream.getvalue())
    module = torchlike.jit.load(path, map_location="cpu", _extra_files=extra)
    assert extra == {"notes.txt": b"hello", "absent": ""} and module.weight.device.type == "cpu"


def caught(f, *args, **kwargs):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return type(f(*args, **kwargs)).__name__
    except Exception as error:
        return [c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins"][0]


def test_errors(tmp_path):
    script, plain, junk = tmp_path / "script.pt", tmp_path / "plain.pt", tmp_path / "junk.pt"
    script.write_bytes(saved(Branches))
    torch.save({}, plain)
    junk.write_bytes(b"hello")
    for t in (torch, torchlike):
        found = [caught(t.jit.load, x) for x in (tmp_path / "absent.pt", plain, junk)] + [caught(t.load, script), caught(t.load, script, weights_only=False)]
        assert found == ["ValueError", "RuntimeError", "RuntimeError", "RuntimeError", "RecursiveScriptModule"]
        module = t.jit.load(script)
        image = t.ones(2, 1, 8, 8)
        assert caught(module, image, nothing=3) == caught(module) == caught(module, image, True, None, None) == "RuntimeError"
        assert caught(lambda m=module: m.absent) == "AttributeError"
    with pytest.raises(torchlike.jit.Error, match="needs two"):
        torchlike.jit.load(io.BytesIO(saved(Needs)))(torchlike.ones(3))


class Needs(nn.Module):
    def forward(self, x):
        assert x.dim() == 2, "needs two"
        return x


HOSTILE = ["torch.load('x')", "torch.from_file('/etc/passwd', False, 3)", "().__class__", "getattr(x, '__class__')", "getattr(self, '__class__')", "self.__dict__",
           "x.numpy", "ops.random.os", "ops.prim.eval('1')", "open('/etc/passwd')", "eval('1')", "print.__self__", "__torch__.os.system('true')",
           "torch.ops.basic", "torch.append.__globals__", "(lambda: 1)()", "[y for y in x]", "self._code", "self.forward.func", "f'{x}'", "exec('1')",
           "torch.hub", "torch.utils.data", "CONSTANTS.__class__", "'{0.__class__}'.format(x)"]


@pytest.mark.parametrize("text", HOSTILE)
def test_the_text_reaches_nothing_else(text):
    source = zipfile.ZipFile(io.BytesIO(saved(Needs)))
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as target:
        for name in source.namelist():
            data = source.read(name)
            if name.endswith("code/__torch__.py"):
                head = data.decode().partition("  def forward")[0]
                data = f"{head}  def forward(self, x: Tensor) -> Tensor:\n    return {text}\n".encode()
            target.writestr(name, data)
    module = torchlike.jit.load(stream)
    with pytest.raises((RuntimeError, ValueError, TypeError, IndexError)):
        module(torchlike.ones(2))
