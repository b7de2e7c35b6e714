"""Operators of a program's own, as modes and classes with `__torch_dispatch__` see them: whole, with what they were called with."""
import importlib

import pytest
from same import same


def defined(torch, name):
    """One with a derivative, one that writes, and those of a Library with a kernel and of other operators."""
    made = torch.library.custom_op(f"{name}::scaled", lambda x, s: x.sin() * s, mutates_args=(), schema="(Tensor x, float s=2.0) -> Tensor")

    def keep(ctx, inputs, output):
        ctx.x, ctx.s = inputs
    made.register_autograd(lambda ctx, g: (g * ctx.x.cos() * ctx.s, None), setup_context=keep)
    made.register_fake(lambda x, s=2.0: torch.empty_like(x))
    writing = torch.library.custom_op(f"{name}::more", lambda x: (x.add_(1), None)[1], mutates_args={"x"}, schema="(Tensor(a!) x) -> ()")
    library = torch.library.Library(name, "FRAGMENT")
    library.define("twice(Tensor x, int a=1, str b='q', *, float c=2., Tensor? d=None) -> Tensor")
    library.impl("twice", lambda x, a=1, b="q", *, c=2.0, d=None: x * 2 * a, "CompositeExplicitAutograd")
    library.define("of_others(Tensor x) -> Tensor")
    library.impl("of_others", lambda x: x * 3, "CompositeImplicitAutograd")
    return made, writing, getattr(torch.ops, name), library


def watching(torch, seen):
    mode = importlib.import_module(f"{torch.__name__}.utils._python_dispatch").TorchDispatchMode

    class Watching(mode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func.namespace != "aten":
                seen.append((str(func).partition(".")[2], args[1:], kwargs))
            return func(*args, **(kwargs or {}))
    return Watching()


@same
def test_a_mode_sees_them(torch):
    seen = []
    scaled, more, ops, library = defined(torch, "watched")
    x, z = torch.ones(3, requires_grad=True), torch.ones(2)
    with watching(torch, seen):
        scaled(x, 3.0).sum().backward()
        more(z)
        ops.twice(z)
        ops.of_others(z)
    return seen, x.grad, z


@same
def test_arguments_without_what_is_the_default(torch):
    seen = []
    _, _, ops, library = defined(torch, "shown")
    x = torch.ones(2)
    with watching(torch, seen):
        for args, kwargs in (((), {}), ((1,), {}), ((2,), {}), ((1, "q"), {}), ((1, "z"), {}), ((), {"b": "z"}), ((), {"a": 1, "b": "q", "c": 2.0, "d": None}),
                             ((), {"c": 3.0}), ((), {"a": 3})):
            ops.twice(x, *args, **kwargs)
    return seen


@same
def test_a_class_gets_them(torch):
    seen = []

    class Holding(torch.Tensor):
        @staticmethod
        def __new__(cls, data):
            return torch.Tensor._make_wrapper_subclass(cls, data.shape, dtype=data.dtype, requires_grad=data.requires_grad)

        def __init__(self, data):
            self.data_held = data

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            seen.append(str(func))
            plain = [a.data_held if isinstance(a, Holding) else a for a in args]
            made = func(*plain, **(kwargs or {}))
            return Holding(made) if isinstance(made, torch.Tensor) else made
    scaled, more, ops, library = defined(torch, "held")
    t = Holding(torch.ones(3))
    made = scaled(t, 3.0), ops.twice(t), ops.of_others(t)
    more(t)
    return seen, [type(m).__name__ for m in made], [m.data_held for m in made], t.data_held


@same
def test_in_a_traced_graph_they_are_nodes(torch):
    make_fx = importlib.import_module(f"{torch.__name__}.fx.experimental.proxy_tensor").make_fx
    scaled, _, ops, library = defined(torch, "traced")
    graph = make_fx(lambda a: scaled(a, 3.0) + ops.twice(a))(torch.ones(2))
    return [str(n.target) for n in graph.graph.nodes], graph(torch.full((2,), 0.5))


@same
def test_fake_tensors_take_what_was_registered(torch):
    fake = importlib.import_module(f"{torch.__name__}._subclasses.fake_tensor")
    scaled, _, _, library = defined(torch, "faked")
    with fake.FakeTensorMode():
        made = scaled(torch.ones(3), 3.0)
    return type(made).__name__, tuple(made.shape), made.device.type


def test_nobody_is_asked_while_nobody_dispatches(subject, monkeypatch):
    """Where no class and no mode is, the kernel is called at once."""
    leaves = importlib.import_module("torchlike._leaves")
    _, _, ops, library = defined(subject, "alone")
    monkeypatch.setattr(leaves, "hand_on", lambda *_, **__: pytest.fail("handed on"))
    assert ops.twice(subject.ones(2)).tolist() == [2.0, 2.0]


@same
def test_a_class_may_be_given_data_and_return_nothing(torch):
    aten, seen = torch.ops.aten, []

    class Given(torch.Tensor):
        @staticmethod
        def __new__(cls, data):
            return torch.Tensor._make_wrapper_subclass(cls, (7,), dtype=torch.float64)

        def __init__(self, data):
            self.data = data

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return None
    t = Given(torch.ones(2, 3))
    made = aten.t.default(t), t.t(), t.view(6), torch.relu(t)
    with importlib.import_module(f"{torch.__name__}.utils._mode_utils").no_dispatch():
        total = torch.Tensor.sum(t)
    return tuple(t.shape), str(t.dtype).rpartition(".")[2], made, seen, total
