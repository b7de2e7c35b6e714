"""Random programs for the fuzzer: lists of source lines over a pool of small tensors.

A program is made while it runs on real torch, which knows the shapes, so most lines make sense; some are kept though
they fail, for the failure must be the same elsewhere. Lines are plain Python: a failing program is its own script.
"""
import random
from collections.abc import Callable
from typing import Any

import numpy as np
from compare import accidental, raised

UNARY = ("torch.sin({x})", "torch.cos({x})", "torch.tanh({x})", "torch.sigmoid({x})", "torch.exp({x}.clamp(-2, 1))",
    "torch.relu({x})", "{x}.abs()", "-{x}", "{x} ** 2", "torch.sqrt({x}.abs() + 0.5)", "torch.log({x}.abs() + 0.5)",
    "1 / ({x}.abs() + 0.5)", "F.softplus({x})", "F.gelu({x})", "F.silu({x})", "{x}.clamp(-0.5, 0.7)", "{x}.floor()",
    "{x}.sign()", "{x}.clone()", "{x}.contiguous()", "{x} * 1.5", "{x} + 0.25", "2 - {x}", "{x}.cumsum({d})",
    "{x}.flip({d})", "{x}.roll(1, {d})", "{x}.softmax({d})", "F.log_softmax({x}, {d})", "{x}.sort({d}).values",
    "{x}.double()", "{x}.float()", "torch.zeros_like({x})", "F.leaky_relu({x})",
    "{x}.square().mean({d}, keepdim=True)", "F.layer_norm({x}, {x}.shape[-1:])", "F.normalize({x}, dim={d}, eps=0.1)",
    "F.dropout({x}, 0.5, training=False)", "{x} / {x}.detach().abs().add(1)", "torch.where({x} > 0, {x}, {x} * 0.1)",
    "torch.tril({x}.reshape(1, -1))")
REDUCTIONS = ("{x}.sum()", "{x}.mean()", "{x}.sum({d})", "{x}.mean({d}, keepdim=True)", "{x}.amax({d})",
    "{x}.max({d}).values", "{x}.min()", "{x}.logsumexp({d})", "{x}.var({d}, unbiased=False)", "{x}.prod({d})",
    "{x}.norm()", "({x} > 0).sum()", "{x}.argmax({d})", "{x}.std(unbiased=False)", "{x}.amin()",
    "torch.linalg.vector_norm({x} + 3, dim={d})")
BINARY = ("{x} + {y}", "{x} - {y}", "{x} * {y}", "{x} / ({y}.abs() + 1)", "torch.maximum({x}, {y})",
    "torch.minimum({x}, {y})", "torch.where({x} > {y}, {x}, {y})", "torch.atan2({x}, {y}.abs() + 0.5)", "{x} > {y}",
    "({x} <= {y}) * {x}", "torch.lerp({x}, {y}, 0.3)", "torch.add({x}, {y}, alpha=2)", "F.mse_loss({x}, {y})",
    "torch.hypot({x}, {y}.abs() + 1)", "torch.addcmul({x}, {y}, {y}, value=0.5)",
    "F.smooth_l1_loss({x}, {y}, reduction='sum')", "({x} - {y}).abs().pow(1.5)")
VIEWS = ("{x}[{i}]", "{x}[{a}:{b}]", "{x}[::2]", "{x}[None]", "{x}[..., {i}]", "{x}[..., {a}:{b}]", "{x}.reshape(-1)",
    "{x}.view(-1)", "{x}.t()", "{x}.transpose(0, -1)", "{x}.permute(*range({x}.dim() - 1, -1, -1))",
    "{x}.unsqueeze({d})", "{x}.squeeze()", "{x}.narrow({d}, 0, 1)", "{x}.select({d}, -1)", "{x}.diagonal()",
    "{x}.unfold({d}, 2, 1)", "{x}.flatten()", "{x}.movedim(0, -1)", "{x}.expand(2, *{x}.shape)", "{x}.detach()",
    "{x}.data", "{x}.split(1, {d})[0]", "{x}.chunk(2, {d})[-1]", "{x}.unbind({d})[0]", "{x}.view_as({x})", "{x}.T",
    "{x}[:, {a}:{b}]", "{x}[{i}:, None]", "{x}[..., ::2]", "{x}.mT", "{x}.as_strided((2,), (1,))", "{x}[:]",
    "{x}.swapaxes(0, 1)", "{x}.unflatten(-1, (1, -1))", "{x}.view({x}.shape)", "{x}.ravel()",
    "{x}.tensor_split(2, {d})[0]")
GATHERS = ("{x}[[0, -1]]", "{x}[torch.tensor([0, 0])]", "{x}[{x} > 0]", "{x}[..., [0]]",
    "{x}.index_select({d}, torch.tensor([0]))", "{x}.masked_fill({x} > 0.5, 0.5)", "torch.cat([{x}, {x}], {d})",
    "torch.stack([{x}, {x} * 2], {d})", "{x}.repeat(2, *[1] * {x}.dim())", "F.pad({x}, (1, 1))",
    "{x}.gather({d}, torch.zeros({x}.shape, dtype=torch.long))",
    "{x}.index_add({d}, torch.tensor([0]), {x}.narrow({d}, 0, 1))", "{x}.repeat_interleave(2, {d})",
    "{x}.topk(1, {d}).values", "torch.cat([{x}.reshape(-1), {y}.reshape(-1)])",
    "{x}.scatter({d}, torch.zeros({x}.shape, dtype=torch.long), {x} * 2)", "{x}[torch.arange({x}.shape[0]), 0]",
    "torch.outer({x}.reshape(-1)[:3], {y}.reshape(-1)[:2])",
    "torch.meshgrid({x}.reshape(-1)[:2], {y}.reshape(-1)[:2], indexing='ij')[0]", "({x} @ {y}).clone()",
    "({x} @ {y}.transpose(-1, -2)).clone()", "torch.einsum('...i,...i->...', {x}, {x})", "F.linear({x}, {y}).clone()",
    "{x}.reshape(1, -1) @ {x}.reshape(-1, 1)")  # the version of a matrix times a vector is torch's own affair: cloned
EDITS = ("{x}.add_({y})", "{x}.sub_({y})", "{x}.mul_({y})", "{x}.add_(0.5)", "{x}.mul_(1.25)", "{x}.div_(2)",
    "{x}.copy_({y})", "{x}.fill_(0.3)", "{x}.zero_()", "{x}.clamp_(-1, 1)", "{x}.relu_()", "{x}.sigmoid_()",
    "{x}.tanh_()", "{x}.neg_()", "{x}.sin_()", "{x}.masked_fill_({x} > 0.2, 0.1)", "{x}[{i}] = 0.5",
    "{x}[{a}:{b}] = {y}", "{x}[..., {i}] = 1", "{x}[{x} > 0] = -0.5", "{x}[{i}] += 1", "{x}[..., {a}:{b}] *= 2",
    "{x} += {y}", "{x} *= 0.5", "{x} -= {y}", "{x}[[0]] = 0.7", "{x}[None] += 0.1", "{x}.t_()", "{x}.unsqueeze_(0)",
    "{x}.lerp_({y}, 0.4)", "{x}.addcmul_({y}, {y})",
    "{x}.index_add_({d}, torch.tensor([0]), {x}.narrow({d}, 0, 1).clone())", "{x}.data.mul_(0.9)",
    "{x}.detach().add_(0.1)", "{x}[torch.tensor([0])] -= 0.2", "{x}.squeeze_()", "{x}.view(-1)[0] = 0.9",
    "{x}.select({d}, 0).mul_(3)", "{x}.transpose(0, -1).add_(0.2)", "{x}.pow_(2)", "{x}.exp_().clamp_(0, 2)",
    "{x}.cumsum_({d})", "{x}.scatter_({d}, torch.zeros({x}.shape, dtype=torch.long), 0.4)", "{x}.requires_grad_()",
    "{x}.detach_()", "{x}.copy_({x}.clone().flip(0))", "torch.add({x}, 1, out={x})", "torch.sin({y}, out={x})",
    "F.relu({x}, inplace=True)", "F.leaky_relu_({x})", "{x}.diagonal().zero_()", "{x}.flatten()[0] += 2",
    "{x}.expand(2, *{x}.shape).add_(1)", "{x}.unbind({d})[0].add_(1)")
SHARING = ("{x}.copy_", "{x}.add_(", "{x}.sub_(", "{x}.mul_(", "= {y}", "lerp_", "addcmul_", "out=")
OBSERVATIONS = ("{x}.sum().item()", "{x}.tolist()", "repr({x}.shape)", "bool(({x} > 0).any())", "{x}.requires_grad",
    "{x}.is_leaf", "{x}.is_contiguous()", "{x}._version", "{x}.numel()", "str({x}.dtype)",
    "{x}.detach().numpy().sum()", "float({x}.reshape(-1)[0])", "[v.sum().item() for v in {x}]", "len({x})",
    "{x}.equal({x}.clone())")
ACCIDENTS = ("single memory location", "bool tensor", "ZeroTensors are immutable")
LIMIT = 1e4


class Writer:
    """Writes one program. `names`: the namespace in which real torch has run the lines so far."""

    def __init__(self, torch: Any, seed: int):
        self.torch, self.choice = torch, random.Random(seed)
        self.names: dict[str, Any] = namespace(torch)
        # Mostly float64: its small tolerance tells rounding from mistakes. Some programs mix dtypes.
        self.weights_of_dtypes = self.choice.choices(((80, 0, 12, 8), (0, 80, 12, 8), (45, 35, 12, 8)), (70, 15, 15))[0]
        self.lines: list[str] = []
        self.count = 0

    def write(self, length: int) -> list[str]:
        for _ in range(self.choice.randint(2, 4)):
            self.keep(self.leaf())
        while len(self.lines) < length:
            kind = self.choice.choices((self.result, self.view, self.edit, self.observation, self.backward,
                self.gradient, self.leaf), (30, 22, 26, 5, 7, 6, 3))[0]
            line = kind()
            if line and not self.keep(line):
                return self.lines
        for _ in range(3):  # most of what a program did shows in its gradients
            line = self.backward()
            if line and not self.keep(line):
                break
        return self.lines

    def keep(self, line: str) -> bool:
        """Run a line and mostly keep it; False ends the program (a failed backward, values out of bounds)."""
        outcome = run_line(line, self.names)
        if outcome and "backward(" not in line and "grad(" not in line and self.choice.random() > 0.3:
            return True
        if outcome and accidental(raised(outcome)):
            return True
        # Accidents of torch's derivatives: that of a write where elements repeat is such a write, some subtract bool operands, and that
        # of `abs` leaves a symbolic zero in `.grad`, which the next backward cannot add to.
        if outcome and "backward(" in line and any(words in str(outcome) for words in ACCIDENTS):
            return False
        self.lines.append(line)
        if outcome and ("backward(" in line or "grad(" in line):
            return False
        return all(bounded(value) for value in self.names.values() if is_tensor(self.torch, value) and usable(value))

    # --------------------------------------------------------------------------------------------- choosing
    def tensors(self, wanted: Callable[[Any], bool] = lambda x: True) -> list[str]:
        return [n for n, v in self.names.items() if is_tensor(self.torch,
            v) and usable(v) and v.numel() <= 64 and wanted(v)]

    def pick(self, wanted: Callable[[Any], bool] = lambda x: True) -> str | None:
        found = self.tensors(wanted)
        return self.choice.choice(found[-6:] if self.choice.random() < 0.6 else found) if found else None

    def fresh(self) -> str:
        self.count += 1
        return f"t{self.count}"

    def filled(self, template: str, x: str, y: str | None = None) -> str:
        value = self.names[x]
        d = self.choice.randrange(-1, max(value.dim(), 1))
        size = value.shape[0] if value.dim() else 1
        i = self.choice.choice((0, -1, max(size - 1, 0))) if self.choice.random() < 0.95 else 9
        a = self.choice.choice((0, 1))
        return template.format(x=x, y=y or x, d=d, i=i, a=a, b=a + self.choice.choice((1, 1, 2)))

    def partner(self, x: str) -> str:
        """A tensor that broadcasts with x, mostly."""
        shape = self.names[x].shape

        def fits(v: Any) -> bool:
            try:
                return bool(self.torch.broadcast_shapes(shape, v.shape)) or True
            except RuntimeError:
                return False
        return (self.pick(fits) if self.choice.random() < 0.93 else self.pick()) or x

    # ---------------------------------------------------------------------------------------------- lines
    def leaf(self) -> str:
        shape = self.choice.choice(((3,), (2, 3), (3, 2), (2, 2), (1, 3), (), (2, 1, 3), (4,), (2, 2, 2), (0, 2)))
        dtype = self.choice.choices(("float64", "float32", "int64", "bool"), self.weights_of_dtypes)[0]
        count = int(np.prod(shape))
        draw = {"int64": lambda: self.choice.randint(-3, 3), "bool": lambda: self.choice.random() < 0.5}.get(dtype,
            lambda: round(self.choice.uniform(-1.5, 1.5), 3))
        values = np.array([draw() for _ in range(count)]).reshape(shape).tolist()
        grad = ", requires_grad=True" if dtype.startswith("float") and self.choice.random() < 0.75 else ""
        shaped = f".reshape({shape})" if count == 0 and not grad else ""
        return f"{self.fresh()} = torch.tensor({values}, dtype=torch.{dtype}{grad}){shaped}"

    def guarded(self, line: str) -> str:
        return f"with torch.no_grad(): {line}" if self.choice.random() < 0.12 else line

    def result(self) -> str | None:
        x = self.pick(lambda v: v.is_floating_point()) if self.choice.random() < 0.92 else self.pick()
        if x is None:
            return None
        family = self.choice.choices((UNARY, REDUCTIONS, BINARY, GATHERS), (30, 15, 35, 20))[0]
        return self.guarded(f"{self.fresh()} = " + self.filled(self.choice.choice(family), x, self.partner(x)))

    def view(self) -> str | None:
        x = self.pick()
        template = self.choice.choice(VIEWS)
        if x and "as_strided" in template and (self.names[x] if self.names[x]._base is None else self.names[x]._base).numel() < 2:
            return None  # how much memory lies behind the result of a reduction is torch's own affair
        return x and self.guarded(f"{self.fresh()} = " + self.filled(template, x))

    def edit(self) -> str | None:
        leaf_ok = self.choice.random() < 0.08
        x = self.pick(lambda v: not entangled(v) and (leaf_ok or not (v.is_leaf and v.requires_grad)))
        if x is None:
            return None
        template = self.choice.choice(EDITS)
        y = self.partner(x)
        if any(part in template for part in SHARING) and y != x and shares(self.names[x], self.names[y]):
            return None  # what an overlapping copy leaves behind is undefined in torch
        if template.endswith(("requires_grad_()", "detach_()")) and self.aliased(x):
            return None  # whether views made before then require grad goes by how often they were looked at
        if "out=" in template and self.names[x].requires_grad and self.aliased(x) and self.names[x].shape != self.names[y].shape:
            return None  # the views would keep a derivative for memory that a smaller base no longer covers
        if template.endswith("= {y}") and self.names[y].requires_grad and not self.names[x].is_floating_point():
            return None  # makes an integer tensor that requires grad, which fails an assertion in backward
        line = self.filled(template, x, y)
        if template.endswith(("t_()", "squeeze_()", "unsqueeze_(0)")) and self.names[x].requires_grad and self.aliased(x):
            return line  # under no_grad, torch's views of x keep a derivative for the shape it had
        return self.guarded(line)

    def aliased(self, x: str) -> bool:
        return any(y != x and is_tensor(self.torch, v) and shares(self.names[x], v) for y, v in self.names.items())

    def observation(self) -> str | None:
        x = self.pick()
        self.count += 1
        return x and f"o{self.count} = " + self.filled(self.choice.choice(OBSERVATIONS), x)

    def weights(self, x: str) -> str:
        value = self.names[x]
        return f"torch.linspace(-1, 1.5, {value.numel()}, dtype={value.dtype}).reshape({tuple(value.shape)})"

    def backward(self) -> str | None:
        x = self.pick(lambda v: v.requires_grad and v.is_floating_point() and not v.is_leaf)
        if x is None:
            return None
        more = self.choice.choice((", retain_graph=True", ", retain_graph=True", ", retain_graph=True", ""))
        return f"{x}.backward({self.weights(x)}{more})"

    def gradient(self) -> str | None:
        x = self.pick(lambda v: v.requires_grad and v.is_floating_point() and not v.is_leaf)
        by = self.pick(lambda v: v.requires_grad)
        if x is None or by is None:
            return None
        more = self.choice.choice(("create_graph=True", "create_graph=True", "retain_graph=True"))
        return f"{self.fresh()} = gradient(torch.autograd.grad({x}, [{by}], {self.weights(x)}, {more}, allow_unused=True))"


# A copy of a gradient: how torch's derivatives lay theirs out, how often they write it while they make it (its version)
# and what it shares memory with are accidents of their formulas.
GRADIENT = "gradient = lambda found: found[0] if found[0] is None else found[0].clone(memory_format=torch.contiguous_format)"


def namespace(torch: Any) -> dict[str, Any]:
    names = {"torch": torch, "F": torch.nn.functional}
    exec(GRADIENT, names)  # noqa: S102
    return names


def run_line(line: str, names: dict[str, Any]) -> BaseException | None:
    try:
        exec(line, names)  # noqa: S102  (our own generated source)
    except Exception as error:  # the class is the outcome
        return error
    return None


def is_tensor(torch: Any, value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def usable(value: Any) -> bool:
    """torch forbids even to look at some views (made without gradients, base edited with them)."""
    try:
        return value.is_leaf or True
    except RuntimeError:
        return False


def bounded(value: Any) -> bool:
    if not value.is_floating_point() or not value.numel():
        return True
    return bool((value.detach().abs() < LIMIT).all()) and value.numel() <= 200


def entangled(x: Any) -> bool:
    """Whether elements overlap in memory in a way that torch does not detect: what an edit leaves is undefined."""
    offsets = np.zeros((), dtype=int)
    for size, stride in zip(x.shape, x.stride()):
        if stride == 0 and size > 1:
            return False  # detected, and refused
        offsets = np.add.outer(offsets, np.arange(size) * stride)
    return len(np.unique(offsets)) < x.numel()


def shares(x: Any, y: Any) -> bool:
    return x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr()
