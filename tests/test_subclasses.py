"""Subclasses of Tensor and classes with `__torch_function__`: which class results have, what memory they share, who is asked: against real torch."""
import copy
import operator
from importlib import import_module

from same import caught, same


def _classes(torch):
    class S(torch.Tensor):
        pass

    class Below(S):
        pass
    return S, Below


def _name(x):
    return type(x).__name__


@same
def test_class_of_results(torch):
    """The class that is below the others, wherever it stands among the arguments."""
    S, Below = _classes(torch)
    t, s, b = torch.tensor([5.0]), S([5]), Below([5])
    return [_name(x) for x in (
        s + t, t + s, b + s, s + b, b + t, t + b, b[0], b.add(s), s.add(b), torch.add(s, b), torch.add(b, s), torch.stack([s, b]), torch.cat([s, t]),
        s.mul_(2), torch.where(s > 0, b, s), b.max(0).values, s.view(-1), s.detach(), s.clone(), s.float(), s.new_ones(2), s.new_zeros(2),
        s.new_empty(1), s.new_tensor([1.0]), b.new_full((2,), 1.0), torch.zeros_like(s), torch.ones_like(b), torch.full_like(s, 2), torch.empty_like(s),
        torch.rand_like(s), torch.randn_like(b),
        torch.randint_like(s, 3),
        torch.nn.functional.relu(s), s @ t, -s, 2 / s, s == b, s.unbind()[0], torch.nn.Parameter(s))]


@same
def test_classes_beside_each_other(torch):
    class Left(torch.Tensor):
        pass

    class Right(torch.Tensor):
        pass
    return caught(operator.add, Left([1]), Right([1]))[0], caught(torch.add, Left([1]), Right([1]))[0]


@same
def test_the_same_memory(torch):
    """as_subclass, the constructor and _make_subclass show the memory that they are given; the first two are views."""
    S, _ = _classes(torch)
    found = []
    for make in (lambda x: x.as_subclass(S), S, lambda x: torch.Tensor._make_subclass(S, x), torch.Tensor):
        base = torch.arange(4.0)
        made, part = make(base), make(base[1:])
        base[0] = 9
        made[1] = 8
        part.mul_(2)
        found.append((base, made, part, made._base is base, part._base is base, made._is_view(), made._version, base._version))
    return found, caught(torch.ones(1).as_subclass, 3), caught(torch.ones(1).as_subclass, int)


@same
def test_the_same_place_in_the_graph(torch):
    S, _ = _classes(torch)
    w, w2 = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    v, v2, q = w.as_subclass(S), S(w2), w * 2
    (v * 3 + v2).sum().backward()
    r = q.as_subclass(S)
    q.mul_(3)
    w3 = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        n = w3.as_subclass(S)
        n.mul_(5)
    return (w.grad, w2.grad, v.is_leaf, type(v.grad_fn).__name__, v._base is w, v2.requires_grad, r, r._base is q, n._base is w3, w3,
            _name(v * 2), _name(w.grad))


def test_slots(torch):
    """A class with slots of its own has another layout; it is a subclass all the same."""
    class Slotted(torch.Tensor):
        __slots__ = ("elem",)

        @staticmethod
        def __new__(cls, elem):
            made = torch.Tensor._make_subclass(cls, elem, elem.requires_grad)
            made.elem = elem
            return made
    x = torch.ones(3)
    made = Slotted(x)
    made[0] = 2
    return made.elem is x, x, _name(made), _name(x.as_subclass(Slotted))


test_slots = same(test_slots)


@same
def test_switched_off(torch):
    """DisableTorchFunctionSubclass leaves modes on, DisableTorchFunction nothing."""
    S, _ = _classes(torch)
    overrides, C = import_module(torch.__name__ + ".overrides"), torch._C
    seen = []

    class Mode(overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return func(*args, **(kwargs or {}))

    class Own(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return "own"
    x, own = S(torch.ones(2)), torch.ones(2).as_subclass(Own)
    with Mode():
        with C.DisableTorchFunctionSubclass():
            a = torch.sum(x), torch.sum(own)
        with C.DisableTorchFunction():
            b = torch.sum(x), x.mul(2), x.new_ones(1), torch.sum(own)
        c = torch.neg(x)
    return [_name(y) for y in (*a, *b, c)], seen


@same
def test_nobody_takes_over(torch):
    """Python asks the other operand where the first one's class answers NotImplemented."""
    T = torch.Tensor

    class Nothing(T):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    class Reflected(T):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__ if func in (T.__rpow__, T.__rsub__, T.__rmatmul__, T.__rfloordiv__, T.__rmod__) else NotImplemented
    names = "pow sub matmul floordiv mod add mul eq ne".split()
    return [getattr(operator, n)(Nothing(), Reflected()) if n not in ("add", "mul") else caught(getattr(operator, n), Nothing(), Reflected())[0]
            for n in names], caught(torch.add, Nothing(), Nothing())[0]


@same
def test_handlers_that_raise_type_errors(torch):
    """To Python an operator is not there where its handler raises a TypeError: the other operand is asked, or Python words the error."""
    class Refusing(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            raise TypeError(f"not {func.__name__}")

    class Nobody:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    class Own:
        def __radd__(self, other):
            return "radd"

        def __rmatmul__(self, other):
            return "rmatmul"

    def said(f, *args):
        try:
            found = f(*args)
        except TypeError as e:
            found = str(e).replace("torchlike", "torch")
        return found if isinstance(found, (str, bool)) else type(found).__name__
    a, plain = torch.ones(2).as_subclass(Refusing), torch.ones(2)
    pairs = [(a, 2), (2, a), (a, Own()), (a, plain), (plain, a), (plain, Nobody()), (Nobody(), plain), (a, a)]
    names = "add sub mul truediv floordiv mod pow matmul and_ or_ xor lshift rshift eq ne lt le gt ge".split()
    found = [said(getattr(operator, name), *pair) for name in names for pair in pairs if pair[0] is not plain or pair[1] is not a or name[0] not in "lg"]
    found += [said(getattr(operator, name), *pair) for name in "iadd isub imul ipow iand imatmul".split() for i, pair in enumerate(pairs) if i not in (3, 4)]
    return found, [said(f, Nobody(), 1) for f in (torch.add, torch.mul)], said(torch.overrides.handle_torch_function, torch.add, (Nobody(),), Nobody()).partition(" [")[0]


@same
def test_indices_and_values_that_take_over(torch):
    log = []

    class Foreign:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            log.append((func is torch.Tensor.__setitem__, len(args)))
            return -1

    class Own(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return -2 if func in (torch.Tensor.__getitem__, torch.Tensor.__setitem__) else super().__torch_function__(func, types, args, kwargs or {})

    class Kept(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return super().__torch_function__(func, types, args, kwargs or {})
    t = torch.tensor([5])
    i = torch.tensor([0])
    found = [t[Foreign()], t[5, Foreign()], t[i.as_subclass(Own)], t[i.as_subclass(Kept)], _name(t[i.as_subclass(Kept)])]
    t[Foreign()] = t[5, Foreign()] = 1
    t[0] = Foreign()
    return found, t, log, caught(lambda: t[object()]), caught(t.__setitem__, 0, object())


@same
def test_functions_that_ask_by_name(torch):
    class Foreign:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__, [_name(a) for a in args], kwargs
    x = Foreign()
    init = torch.nn.init
    return (torch.autograd.grad(x, x), torch.autograd.backward(x), torch.distributions.utils.broadcast_all(x, 1.0), init.constant_(x, 2)[0],
            sorted(init.uniform_(x, b=3)[2]), sorted(init.kaiming_uniform_(tensor=x)[2]), init.normal_(x)[0])


@same
def test_modes_see_initializers(torch):
    overrides = import_module(torch.__name__ + ".overrides")
    seen = []

    class Mode(overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return (kwargs or {})["tensor"] if func.__name__ in ("uniform_", "kaiming_uniform_") and not args else func(*args, **(kwargs or {}))
    with Mode():
        torch.nn.Linear(2, 2)
    return [n for n in seen if n.endswith("_") and not n.startswith("_")][:1]


@same
def test_refused_handlers(torch):
    overrides = import_module(torch.__name__ + ".overrides")

    class Mode(overrides.TorchFunctionMode):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    def run():
        with Mode():
            return torch.ones(1) + 1
    return caught(run), caught(overrides.has_torch_function, object())


@same
def test_plain_method_warns(torch):
    import warnings

    class Foreign:
        def __torch_function__(self, *args, **kwargs):
            return 3
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        result = torch.abs(Foreign())
    return result, [(w.category, str(w.message).split(" (Triggered")[0]) for w in seen]


@same
def test_batches(torch):
    """A loader's batches are of the samples' class, which is told of `stack` where it takes over."""
    S, _ = _classes(torch)
    told = []

    class Told(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            told.append(func is torch.stack)
            return super().__torch_function__(func, types, args, kwargs)
    data = import_module(torch.__name__ + ".utils.data")
    return [_name(batch["x"]) for C in (S, Told) for batch in data.DataLoader([{"x": torch.ones(2).as_subclass(C)} for _ in range(4)], 2)], any(told)


@same
def test_operator_of_an_alias(torch):
    """What a dispatch mode sees, and that torch.compile, vmap and derivatives go through it."""
    S, _ = _classes(torch)
    seen = []

    class Mode(import_module(torch.__name__ + ".utils._python_dispatch").TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))
    x = torch.arange(4.0).view(2, 2)
    with Mode():
        y = torch.Tensor(x)
    return seen, y, torch.vmap(lambda a: torch.Tensor(a) * 2)(x), torch.func.grad(lambda a: (torch.Tensor(a) * a).sum())(x)


def test_alias_in_a_traced_call():
    import torchlike as torch
    S, _ = _classes(torch)
    f = torch.compile(lambda a: torch.Tensor(a) * 2 + a.as_subclass(S))
    found = [f(torch.full((3,), float(i))) for i in range(4)]
    assert [x.tolist() for x in found] == [[3.0 * i] * 3 for i in range(4)] and {type(x) for x in found} == {S}


def test_alias_in_onnx():
    import torchlike as torch

    class M(torch.nn.Module):
        def forward(self, x):
            return torch.Tensor(x) * 2
    program = torch.onnx.export(M(), (torch.ones(2, 2),), dynamo=True)
    assert program(torch.ones(2, 2))[0].tolist() == [[2.0, 2.0]] * 2


@same
def test_classes_that_begin_to_take_over(torch):
    """`__torch_function__` set on a class that is there already, taken from it, or inherited from a class that is no Tensor."""
    S, Below = _classes(torch)
    log = []

    @classmethod
    def handler(cls, func, types, args=(), kwargs=None):
        log.append((cls.__name__, func.__name__))
        return super(S, cls).__torch_function__(func, types, args, kwargs or {})

    class Mixin:
        __torch_function__ = handler

    class Mixed(Mixin, S):
        pass

    class Bare:
        pass

    class Besides(Bare, torch.Tensor):
        pass

    def use(cls):
        x = torch.ones(2).as_subclass(cls)
        made = [torch.relu(x), x.relu(), x + 1, 1 + x, x[0]]
        found, log[:] = list(log), []
        return [_name(m) for m in made], found
    before = [use(c) for c in (S, Below, Mixed, Besides)]
    S.__torch_function__ = handler
    taken = [use(c) for c in (S, Below, Mixed)]
    S.__torch_function__ = torch._C._disabled_torch_function_impl
    disabled = use(S)
    del S.__torch_function__
    return before, taken, disabled, use(S)


@same
def test_attributes_called_as_the_engine_s(torch):
    """`_edge` and `_chain` are names of torchlike's own, too."""
    class Named(torch.Tensor):
        _chain = 5

        def put(self, x):
            self._edge = x

        def _view(self):
            return "view"
    p = torch.ones(2, requires_grad=True).as_subclass(Named)
    p._chain = [1]
    p.put("edge")
    q = (p * 2).sum()
    q.backward()
    p.__dict__["_chain"].append(2)
    return p._edge, p._chain, p._view(), p.requires_grad, _name(q), q._chain, hasattr(q, "_edge"), p[0].detach(), Named._chain, copy.copy(p.detach())._chain, sorted(vars(p))
