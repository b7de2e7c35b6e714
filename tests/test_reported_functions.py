"""What functions, methods and operators are called: `__name__`, identity, and what `__torch_function__` and modes are told, against real torch."""
import operator
import pickle

import pytest
from nn_models import said
from same import error, same

import torchlike

SCOPES = ("", "Tensor", "linalg", "fft", "special", "nn.functional")
LEFT_OUT = {"Tensor.__init_subclass__", "Tensor.__torch_function__", "sym_sqrt", "symeig", "to_dlpack", "nn.functional.logsigmoid", "nn.functional.threshold"}


def _functions(torch):
    found = {}
    for scope in SCOPES:
        holder = operator.attrgetter(scope)(torch) if scope else torch
        for name in dir(holder):
            f = getattr(holder, name, None) if not name.startswith("_") or scope == "Tensor" and name.startswith("__") else None
            if callable(f) and not isinstance(f, type) and f"{scope}.{name}".lstrip(".") not in LEFT_OUT:
                found[f"{scope}.{name}".lstrip(".")] = f
    return found


def test_functions_say_what_they_are_called():
    import torch
    theirs, ours = _functions(torch), _functions(torchlike)
    wrong = {name: f.__name__ for name, f in ours.items() if name in theirs and f.__name__ != getattr(theirs[name], "__name__", f.__name__)}
    assert not wrong


def test_which_names_are_one_function():
    """Operators left out: Tensor's `__neg__` is its `neg` there."""
    import torch
    theirs, ours = ({n: f for n, f in _functions(t).items() if "__" not in n} for t in (torch, torchlike))

    def together(functions):
        groups = {}
        for name in sorted(theirs.keys() & ours.keys()):
            groups.setdefault(id(functions[name]), []).append(name)
        return sorted(g for g in groups.values() if len(g) > 1)
    assert together(ours) == together(theirs)


@same
def test_second_names_in_errors_graphs_and_files(torch):
    fx = torch.fx.symbolic_trace(lambda x: torch.concat([torch.arctan(x), torch.special.expit(x).multiply(2), torch.linalg.inv(torch.clip(x, 0, 1))]))
    names = [(n.name, n.target if isinstance(n.target, str) else n.target.__name__) for n in fx.graph.nodes]
    kept = [pickle.loads(pickle.dumps(f)) is f for f in (torch.arctan, torch.special.expit, torch.concat, torch.linalg.inv)] if torch.__name__ == "torch" else [True] * 4
    return names, kept, *(said(f, "x").split("\n")[0] for f in (torch.arctan, torch.special.expit, torch.concat, torch.linalg.inv, torch.fft.fftshift, torch.row_stack))


def _told(torch):
    log = []

    def note(func, args, kwargs):
        log.append((func.__name__, torch.overrides.resolve_name(func), [type(a).__name__ for a in args], sorted(kwargs or {})))

    class Sub(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            note(func, args, kwargs)
            return 7

    class Plain:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            note(func, args, kwargs)
            return 7
    return log, Sub, Plain


TWO = "add sub mul truediv floordiv mod pow matmul and_ or_ xor lshift rshift eq ne lt le gt ge".split()
IN_PLACE = "iadd isub imul itruediv ifloordiv imod ipow imatmul iand ior ixor ilshift irshift".split()


@pytest.mark.parametrize("name", TWO + IN_PLACE)
@same
def test_operators_are_reported_as_what_they_are(torch, name):
    log, Sub, Plain = _told(torch)
    make = {"s": lambda: torch.tensor([[1, 2], [3, 4]]).as_subclass(Sub), "p": Plain, "t": lambda: torch.tensor([[1, 2], [3, 4]]), "i": lambda: 2}
    pairs = ["st", "ts", "ss", "tp", "pt", "sp", "ps"] + ([] if "matmul" in name else ["si", "is"])
    seen = []
    for left, right in pairs:
        del log[:]
        seen.append((left + right, getattr(operator, name)(make[left](), make[right]()), list(log)))
    return seen


METHODS = """t.add(s) t.add_(s) t.mm(s) t.where(s,s) t.copy_(s) t.gather(0,s) t.view_as(s) t.masked_fill(s,0) t.lerp(s,s) t.addcmul_(s,s) t.expand_as(s) t.to(s) t.type_as(s)
t.equal(s) t.allclose(s) t.index_add_(0,t,s) t.fill_(s) t.clamp(min=s) t.scatter_(0,s,1.0) t.maximum(s) t.bmm(s) t.tensor_split(s) t.quantile(s) t.repeat_interleave(s)""".split()


@pytest.mark.parametrize("text", METHODS)
@same
def test_methods_of_plain_tensors_ask_their_arguments(torch, text):
    log, Sub, _ = _told(torch)
    t = torch.rand(2, 2)
    return eval(text, {"t": t, "s": torch.rand(2, 2).as_subclass(Sub)}), log


@same
def test_an_operator_that_nobody_takes_over(torch):
    class Never(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented
    t, n = torch.ones(2), torch.ones(2).as_subclass(Never)
    return [str(error(f, t, n))[:30] for f in (operator.sub, operator.mul, operator.matmul)]


CALLS = """F.relu(v); F.sigmoid(v); F.tanh(v); F.softmax(v, 1); F.linear(v, w); F.conv1d(v, w[:, :, None]); F.max_pool2d(v[None], 2); F.dropout(v, 0.5, False)
F.max_pool2d(v[None], 2, return_indices=True); F.cross_entropy(v, v); F.normalize(v); F.layer_norm(v, (3,)); F.interpolate(v[None], 6); F.threshold(v, 0.1, 0)
F.embedding(v.long(), w); torch.norm(v); v.norm(); v.split(2); torch.split(v, 2); torch.einsum('ij,jk->ik', v, w); torch.unique(v); torch.tensordot(v, w, 1)
v.sum().backward(); torch.cdist(v, w); torch.arctan(v); torch.special.expit(v); v.arctan(); torch.linalg.inv(w); nn.Dropout(0.5)(v)
torch.conv1d(v, w[:, :, None]); torch.from_numpy(a); torch.is_tensor(v); v.multiply(2); -v; 1 / v; v ** 2; v // 2; v.T; v == 1; v < 1; F.one_hot(v.long(), 5)"""


@pytest.mark.parametrize("text", [t.strip() for t in CALLS.replace("\n", ";").split(";")])
@same
def test_modes_are_told_what_torch_calls_it(torch, text):
    """In which form, too: functions that torch has in Python hand what is not required on by name."""
    seen = []

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append((torch.overrides.resolve_name(func) or func.__name__, len(args), sorted(kwargs or {})))
            return func(*args, **(kwargs or {}))
    v = torch.tensor([[0.5, 0.25, 1.0], [1.0, 2.0, 0.5], [1.5, 0.5, 0.25]], requires_grad=True)
    names = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional, "v": v, "w": v.detach() + 1, "a": v.detach().numpy()}
    with Mode():
        eval(text, names)
    return seen


@same
def test_a_class_made_inside_of_a_mode(torch):
    seen = []

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return func(*args, **(kwargs or {}))
    with Mode():
        log, Sub, _ = _told(torch)
        t = torch.ones(2)
        results = t.add(t), t * t
    return results, seen, t.add(t), t.add(t.as_subclass(Sub)), log
