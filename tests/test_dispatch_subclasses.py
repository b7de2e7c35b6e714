"""Tensor subclasses by `__torch_dispatch__`, beside real torch: which operators their classes see, forward and backward, and what comes out."""
import copy
import importlib
import io
import operator
import pickle
from pathlib import Path

import pytest
from forked import printed
from same import error, same

import torchlike


def utils(torch):
    return importlib.import_module(f"{torch.__name__}.utils._python_dispatch")


def tree(torch):
    return importlib.import_module(f"{torch.__name__}.utils._pytree")


def logging(torch):
    """A wrapper that logs operators with the shapes of tensors, and the log."""
    log, tree_map = [], tree(torch).tree_map

    def shown(x):
        if isinstance(x, torch.Tensor):
            return f"{type(x).__name__[0]}{list(x.shape)}"
        return "[" + ", ".join(map(shown, x)) + "]" if isinstance(x, (list, tuple)) else str(x).replace("torchlike", "torch")

    class Wrapper(torch.Tensor):
        @staticmethod
        def __new__(cls, elem):
            made = torch.Tensor._make_wrapper_subclass(cls, elem.size(), strides=elem.stride(), storage_offset=elem.storage_offset(), dtype=elem.dtype,
                                                       layout=elem.layout, device=elem.device, requires_grad=elem.requires_grad)
            made.elem = elem.detach() if made.requires_grad else elem
            return made

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            log.append(f"{func}({', '.join(map(shown, args))}{''.join(f', {k}={shown(v)}' for k, v in (kwargs or {}).items())})")

            def inner(x):
                return x.elem if isinstance(x, Wrapper) else x
            return tree_map(lambda x: Wrapper(x) if isinstance(x, torch.Tensor) else x, func(*tree_map(inner, args), **tree_map(inner, kwargs or {})))
    return Wrapper, log


def with_data(torch):
    """A base of classes whose instances are their data too."""
    class Same(torch.Tensor):
        __torch_function__ = torch._C._disabled_torch_function_impl

        @staticmethod
        def __new__(cls, elem):
            return torch.Tensor._make_subclass(cls, elem, elem.requires_grad)
    return Same


def pairs(torch):
    """Two tensors in one, as `__tensor_flatten__` tells."""
    only = tree(torch).tree_map_only

    class Two(torch.Tensor):
        __torch_function__ = torch._C._disabled_torch_function_impl

        @staticmethod
        def __new__(cls, a, b):
            return torch.Tensor._make_wrapper_subclass(cls, a.size(), strides=a.stride(), storage_offset=a.storage_offset(), device=a.device, layout=a.layout,
                                                       requires_grad=a.requires_grad, dtype=a.dtype)

        def __init__(self, a, b):
            self.a, self.b = a, b

        def __repr__(self):
            return f"Two({self.a!r}, {self.b!r})"

        def __tensor_flatten__(self):
            return ["a", "b"], None

        @staticmethod
        def __tensor_unflatten__(inner, meta, outer_size, outer_stride):
            return Two(inner["a"], inner["b"])

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            made = [func(*only(Two, take, args), **only(Two, take, kwargs or {})) for take in (lambda t: t.a, lambda t: t.b)]

            def wrap(x, y):
                return Two(x, y) if isinstance(x, torch.Tensor) else x
            out = type(made[0])(map(wrap, *made)) if isinstance(made[0], (tuple, list)) else wrap(*made)
            return utils(torch).return_and_correct_aliasing(func, args, kwargs or {}, out)
    return Two


def both(t):
    return type(t).__name__, t.a, t.b


class Kept:
    """Pairs that pickle finds by name, of the library `torch`."""


# functions of tensors of these shapes, whose operators are torch's in the forward and the backward (in any order)
SAME = """x + y|23 3; x * y|23 23; x * 2|23; 1 - x|23; x / y|23 23; x ** 2|23; x @ y|23 34; F.relu(x)|23; x.sigmoid()|23; x.tanh()|23; x.exp()|23; x.log()|23
x.neg()|23; x.sin()|23; x.cos()|23; x.abs()|23; x.reciprocal()|23; F.gelu(x)|23; F.silu(x)|23; F.leaky_relu(x)|23; F.hardtanh(x)|23; F.softplus(x)|23
F.elu(x)|23; F.hardswish(x)|23; x.softmax(1)|23; x.log_softmax(1)|23; x.sum(1)|23; x.sum()|23; x.cumsum(1)|23; x.view(6)|23; x.transpose(0, 1)|23; x.t()|23
x.permute(1, 0)|23; x.unsqueeze(0)|23; x.squeeze(1)|21; x.expand(4, 3)|13; x[0]|23; torch.cat([x, y])|23 23; x.clone()|23; x.tril()|33; x.flip(0)|23
x.repeat(2, 1)|23; F.layer_norm(x, (3,), y, z)|23 3 3; F.mse_loss(x, y)|23 23; F.smooth_l1_loss(x, y)|23 23; F.cross_entropy(x, i)|23; x.diagonal()|33
F.nll_loss(x, i)|23; F.binary_cross_entropy(x.sigmoid(), o)|23; F.embedding(i, x)|43; x.scatter(1, j, y)|23 21; x.logsumexp(1)|23
x.mv(y)|23 3; x.dot(y)|3 3; x.flatten()|23; x.max(1)[0]|23; x.gather(1, j)|23; x[i]|23
x.split(1)[0]|23; x.split([1, 2], 1)[1]|23; x.chunk(2, 1)[1]|24; x.unbind(0)[1]|24; torch.stack([x, y])|23 23; torch.stack((x, y), 1)|23 23
torch.addmm(x, y, z)|24 23 34; torch.baddbmm(x, y, z)|524 523 534; x.masked_fill(x > 1, 0.5)|23; x.index_select(0, i)|33"""
TESTED = [program.strip() for line in SAME.split("\n") for program in line.split(";")]
LEFT_OUT = "aten.detach", "aten.mul.Scalar", "aten.mul.Tensor"  # where results are saved; a number is one or the other


@pytest.mark.parametrize("program", TESTED)
def test_operators(oracle, subject, program):
    """In torch's words but for `detach`, and products with numbers; gradients are of the class, and right (in double precision: a row of
    `layer_norm` is nearly constant, and its operators round otherwise than the whole)."""
    def facts(torch):
        Wrapper, log = logging(torch)
        source, shapes = program.split("|")
        torch.manual_seed(0)
        given = [torch.arange(1.0, 1 + torch.zeros([int(n) for n in shape]).numel()).reshape([int(n) for n in shape]).double().mul(.3).sin_().add_(1.5)
                 for shape in shapes.split()]
        names = {"torch": torch, "F": torch.nn.functional, "i": torch.tensor([0, 1]), "j": torch.tensor([[0], [1]]), "o": torch.ones(2, 3).double()}
        wrapped = [Wrapper(t.clone().requires_grad_()) for t in given]
        out = eval(source, {**names, **dict(zip("xyz", wrapped))})
        out.sum().backward()
        plain = [t.clone().requires_grad_() for t in given]
        eval(source, {**names, **dict(zip("xyz", plain))}).sum().backward()
        return sorted(line.replace(", pin_memory=False", "") for line in log if not line.startswith(LEFT_OUT)), [t.grad for t in wrapped], [t.grad for t in plain]
    ours, theirs = facts(subject), facts(oracle)
    assert ours[0] == theirs[0]
    for mine, plain in zip(*ours[1:]):
        assert type(mine).__name__ == "Wrapper"
        subject.testing.assert_close(mine.elem, plain, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("program", """F.conv2d(x, y, z, padding=1)|1255 3233 3; F.max_pool2d(x, 2)|1244; F.avg_pool2d(x, 2)|1244; F.group_norm(x, 2, y, z)|243 4 4
F.batch_norm(x, None, None, y, z, True)|243 4 4; F.rms_norm(x, (3,), y)|23 3; F.conv_transpose2d(x, y)|1255 2333; x.prod()|23; x.norm()|23; x.var(1)|23
F.scaled_dot_product_attention(x, y, z)|1248 1248 1248; torch.maximum(x, y)|23 23; torch.lerp(x, y, .3)|23 23; x.amax(1)|23
torch.einsum('ij,jk->ik', x, y)|23 34; x.clamp(1, 2)|23; torch.where(x > 1.5, x, y)|23 23; x.sort()[0]|23; x.topk(2)[0]|23
x.half().float()|23; F.interpolate(x, scale_factor=2)|1244; F.glu(x)|24; F.logsigmoid(x)|24
F.binary_cross_entropy_with_logits(x, y)|23 23; F.linear(x, y, z)|523 43 4; x @ y|523 534; x @ y|523 34; x.sqrt().rsqrt()|23; x.t().reshape(6)|23
F.huber_loss(x, y)|23 23; torch.addcmul(x, y, z)|23 23 23; x.erf()|23; x.mean(1)|23; x[:, 1:]|23
torch.atan2(x, y)|23 23; x.cumprod(1)|23; F.pad(x, (1, 1))|23""".replace("\n", ";").split(";"))
def test_gradients(subject, program):
    """Where operators are not torch's one by one: gradients are of the class all the same, and right."""
    torch = subject
    Wrapper, _ = logging(torch)
    source, shapes = program.strip().split("|")
    given = [torch.arange(torch.zeros([int(n) for n in shape]).numel() * 1.0).reshape([int(n) for n in shape]).mul(.7).sin().add(1.5) for shape in shapes.split()]
    results = []
    for wrap in (Wrapper, lambda t: t):
        tensors = [wrap(t.clone().requires_grad_()) for t in given]
        out = eval(source, {"torch": torch, "F": torch.nn.functional, "i": torch.tensor([1]), **dict(zip("xyz", tensors))})
        weights = torch.arange(out.numel() * 1.0).reshape(out.shape).cos()
        (out * weights).sum().backward()
        results.append([out, *(t.grad for t in tensors)])
    for mine, plain in zip(*results):
        assert type(mine) is Wrapper
        torch.testing.assert_close(mine.elem.detach(), plain.detach(), rtol=1e-4, atol=1e-5)


@same
def test_facts(torch):
    """What a wrapper says of itself, and what asks for a number or makes another."""
    Wrapper, log = logging(torch)
    w = Wrapper(torch.arange(6.0).reshape(2, 3))
    facts = [w.shape, str(w.dtype), str(w.device), w.stride(), w.t().stride(), w.numel(), w.dim(), len(w), w.is_contiguous(), w.requires_grad, w.data_ptr(),
             w[0, 1].item(), float(w.sum()), bool(w[0, 0] > 3), torch.equal(w, w), isinstance(w, torch.Tensor)]
    made = [type(x).__name__ for x in (torch.zeros_like(w), w.new_ones(2), torch.full_like(w, 2.0), w.detach(), w.data, w.to(torch.float64), w.nonzero())]
    same_one = w.to(torch.float32) is w, w.contiguous() is w, w.detach() is w
    return facts, made, same_one, [line.replace("torchlike", "torch") for line in log], error(w.numpy), error(w.tolist), error(bool, w)


@same
def test_writes(torch):
    """In place: the operator that writes, on the wrapper, on a view of it, and from it into a plain tensor."""
    Wrapper, log = logging(torch)
    w, plain, made = Wrapper(torch.ones(4)), torch.zeros(4), []
    w.add_(1)
    w += 1
    w.mul_(w).clamp_(0, 5).zero_().fill_(2.0).copy_(torch.arange(4.0))
    made.append(w.elem.clone())
    w[0] = 9.0
    w[1:3] = torch.tensor([7.0, 8.0])
    w[torch.tensor([3])] = 5.0
    w.view(2, 2).sub_(1)
    w.masked_fill_(torch.tensor([True, False, False, False]), 0.5)
    plain.copy_(w)
    plain.add_(w)
    return made, w.elem, plain, w._version > 5, [line for line in log if "view" not in line]


@same
def test_writes_that_are_differentiated(torch):
    Two = pairs(torch)
    x = Two(torch.ones(3, requires_grad=True), torch.full((3,), 2.0))
    y = x * 2
    y.mul_(3)
    y.sum().backward()
    made = both(x.grad)

    def changed():
        y = x * 1
        z = y * y
        y.add_(1)
        z.sum().backward()
    try:
        changed()
    except RuntimeError as e:
        said = str(e)
    z = torch.zeros(3)
    z.copy_(x.a)
    q = x * 0
    q.copy_(x * 5)
    x.grad = None
    q.sum().backward()
    return made, said.replace("torch.FloatTensor", "").partition("Hint")[0], error(x.add_, 1), both(x.grad)


@same
def test_autograd(torch):
    """Second derivatives, hooks, kept gradients, Functions, detaching, plain tensors among the operands."""
    Two = pairs(torch)
    x = Two(torch.full((2,), 2.0, requires_grad=True), torch.full((2,), 3.0))
    g, = torch.autograd.grad((x ** 3).sum(), x, create_graph=True)
    gg, = torch.autograd.grad(g.sum(), x)
    seen = []

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            x, = ctx.saved_tensors
            seen.append((type(x).__name__, type(g).__name__))
            return g * 2 * x
    custom, = torch.autograd.grad(Square.apply(x).sum(), x)
    y = x * 2
    y.register_hook(lambda g: seen.append(type(g).__name__) or g * 10)
    y.retain_grad()
    y.sum().backward()
    y = x * 2
    y.sum().backward()  # into the gradient that is there
    w = torch.ones(2, requires_grad=True)
    (w * x).sum().backward()
    with torch.no_grad():
        outside = (x * 2).requires_grad
    return both(g), both(gg), both(custom), seen, both(x.grad), both(w.grad), outside, x.detach().requires_grad, type(y.grad_fn).__name__


@same
def test_modules(torch):
    """Parameters, copies, state, conversions and optimizers."""
    Two, nn = pairs(torch), torch.nn
    lin = nn.Linear(3, 2)
    lin.weight = nn.Parameter(Two(torch.ones(2, 3), torch.zeros(2, 3)))
    lin.bias = nn.Parameter(Two(torch.ones(2), torch.zeros(2)))
    facts = [isinstance(lin.weight, nn.Parameter), type(lin.weight).__name__, lin.weight.requires_grad, len(list(lin.parameters())), list(lin.state_dict())]
    lin(torch.arange(6.0).reshape(2, 3)).pow(2).sum().backward()
    facts += [both(lin.weight.grad), both(lin.bias.grad)]
    copied = copy.deepcopy(lin)
    facts += [copied.weight is lin.weight, copied.weight.a is lin.weight.a, both(copied.weight), both(copied.weight.grad)]
    for cls in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop, torch.optim.Adagrad):
        model = copy.deepcopy(lin)
        optimizer = cls(model.parameters(), lr=.1)
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.ones(1, 3)).pow(2).sum().backward()
            optimizer.step()
        facts += [both(model.weight), both(model.bias)]
    wide = copy.deepcopy(lin).to(torch.float64)
    facts += [str(wide.weight.dtype), str(wide.weight.b.dtype), both(wide(torch.ones(1, 3, dtype=torch.float64)))]
    other = copy.deepcopy(lin)
    other.load_state_dict(wide.state_dict())
    return *facts, both(other.weight), str(other.weight.dtype)


@same
def test_traceable(torch):
    """Classes that hold tensors: what they hold is found and made anew."""
    Two, u = pairs(torch), utils(torch)
    t = Two(torch.arange(6.0).reshape(2, 3), torch.ones(2, 3))

    class Bare(torch.Tensor):
        pass
    return (u.is_traceable_wrapper_subclass(t), u.is_traceable_wrapper_subclass(torch.ones(1)), u.is_traceable_wrapper_subclass_type(Bare),
            both(u.transform_subclass(t, lambda name, x: x * (2 if name == "a" else 3))),
            error(u.transform_subclass, t, lambda name, x: x.t()), both(torch.cat([t, t])), both(t.max(1)[0]), [both(x) for x in t])


@same
def test_quantized(torch):
    """A weight of 8 bits that takes over a few operators and refuses the others."""
    aten, nn = torch.ops.aten, torch.nn

    class Quantized(torch.Tensor):
        @staticmethod
        def __new__(cls, q, scale, dtype):
            return torch.Tensor._make_wrapper_subclass(cls, q.shape, dtype=dtype, device=q.device)

        def __init__(self, q, scale, dtype):
            self.q, self.scale = q, scale

        @classmethod
        def of(cls, w):
            scale = w.abs().amax(1) / 127
            return cls((w / scale[:, None]).round().to(torch.int8), scale, w.dtype)

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func is nn.functional.linear:
                x, w, b = args
                return (x @ w.q.to(x.dtype).t()) * w.scale + b
            with torch._C.DisableTorchFunctionSubclass():
                return func(*args, **(kwargs or {}))

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            t = args[0]
            if func in (aten.detach.default, aten.clone.default):
                return cls(func(t.q), func(t.scale), t.dtype)
            if func is aten._to_copy.default:
                return cls(t.q, t.scale.to(kwargs["dtype"]), kwargs["dtype"])
            if func is aten.copy_.default:
                t.q.copy_(args[1].q)
                return t
            raise NotImplementedError(f"{func}")
    torch.manual_seed(0)
    lin, x = nn.Linear(4, 3), torch.arange(8.0).reshape(2, 4)
    exact = lin(x).detach()
    lin.weight = nn.Parameter(Quantized.of(lin.weight.detach()), requires_grad=False)
    near = bool((lin(x) - exact).abs().max() < .1)
    lin(x).sum().backward()
    half = copy.deepcopy(lin).to(torch.bfloat16)
    other = nn.Linear(4, 3)
    other.weight = nn.Parameter(Quantized.of(torch.ones(3, 4)), requires_grad=False)
    other.load_state_dict(lin.state_dict())
    with pytest.raises(NotImplementedError) as refused:
        lin.weight + 1
    return near, lin.bias.grad, str(half.weight.dtype), str(half.weight.scale.dtype), torch.equal(other.weight.q, lin.weight.q), str(refused.value)


@same
def test_with_data(torch):
    """`_make_subclass`: an instance that is its data too, seen through by `super().__torch_dispatch__`."""
    seen, only = [], tree(torch).tree_map_only

    class Seen(with_data(torch)):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            seen.append(str(func))
            out = super().__torch_dispatch__(func, types, args, kwargs or {})
            return only(torch.Tensor, lambda t: t if isinstance(t, Seen) else Seen(t), out)
    data = torch.arange(4.0)
    s = Seen(data)
    made = [type(s + 1).__name__, (s + 1).sum().item()]
    s.add_(1)
    s[0] = 7.0
    s.view(2, 2)[1].mul_(0)
    y = Seen(torch.ones(3, requires_grad=True))
    (y * 2).sum().backward()
    return made, data, s.data_ptr() == data.data_ptr(), type(y.grad).__name__, y.grad.sum().item(), s._version > 0, seen


@same
def test_who_is_asked(torch):
    """Subclasses before their bases, modes before all, NotImplemented goes on to the next."""
    asked, Mode = [], utils(torch).TorchDispatchMode

    class A(with_data(torch)):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            asked.append((cls.__name__, [t.__name__ for t in types]))
            return NotImplemented if cls.__name__ == "B" else super().__torch_dispatch__(func, types, args, kwargs or {})

    class B(A):
        pass

    class Watch(Mode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            asked.append((str(func), [t.__name__ for t in types]))
            return func(*args, **(kwargs or {}))
    a, b = A(torch.ones(1)), B(torch.ones(1))
    torch.add(a, b)
    torch.add(b, a)
    with Watch():
        torch.add(a, 1)
    with pytest.raises(TypeError) as refused:
        torch.add(b, 1)
        raise TypeError("Multiple dispatch failed") if ("A", ["B"]) in asked else TypeError("no")
    return asked, "Multiple dispatch failed" in str(refused.value)


@same
def test_plain_results(torch):
    """A class whose operators return plain tensors."""
    only = tree(torch).tree_map_only

    class Plain(torch.Tensor):
        __torch_function__ = torch._C._disabled_torch_function_impl

        @staticmethod
        def __new__(cls, e):
            made = torch.Tensor._make_wrapper_subclass(cls, e.shape, dtype=e.dtype)
            made.e = e
            return made

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return func(*only(Plain, lambda p: p.e, args), **only(Plain, lambda p: p.e, kwargs or {}))
    p = Plain(torch.ones(3))
    trained = Plain(torch.ones(3)).requires_grad_()
    (trained * 3).sum().backward()
    return (p + 1, type(p + 1).__name__, p @ p, torch.stack([p, p]), torch.zeros_like(p), error(torch.nn.Parameter, p), trained.grad, type(trained.grad).__name__,
            error(torch.Tensor._make_wrapper_subclass, torch.Tensor, (2,)))


@same
def test_a_class_that_takes_functions_over_later(torch):
    """PyTorch's tutorial of swap_tensors gives its wrapper `__torch_function__` once it has made some."""
    class W(torch.Tensor):
        @staticmethod
        def __new__(cls, e):
            return torch.Tensor._make_wrapper_subclass(cls, e.shape, dtype=e.dtype)

        def __init__(self, e):
            self.e = e

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return cls(func(args[0].e, *args[1:], **(kwargs or {})))

    def handler(cls, func, types, args=(), kwargs=None):
        asked.append(func.__name__)
        if func is torch.Tensor.module_load:
            return cls(args[1])
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))
    asked, before = [], W(torch.ones(2))
    before.detach()
    W.__torch_function__ = classmethod(handler)
    after = W(torch.ones(2))
    return type(after.sin()).__name__, type(after.detach()).__name__, type(after.module_load(torch.zeros(2))).__name__, asked


def test_the_backward_of_modes(oracle, subject):
    """A mode sees what the backward computes; where torch saves a result it detaches it, which has no counterpart."""
    def facts(torch):
        class Log(utils(torch).TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                log.append(str(func))
                return func(*args, **(kwargs or {}))
        log = []
        x, w = torch.arange(6.0).reshape(2, 3).requires_grad_(), torch.ones(3, 2, requires_grad=True)
        y = (x @ w).relu().exp().softmax(1)
        with Log():
            y.sum().backward()
        return [name for name in log if name not in ("aten.detach.default", "aten.ones_like.default")], x.grad, w.grad
    ours, theirs = facts(subject), facts(oracle)
    assert ours[0] == theirs[0]
    for mine, other in zip(ours[1:], theirs[1:]):
        oracle.testing.assert_close(oracle.tensor(mine.tolist()), other)


def test_saving(oracle, subject):
    """torch.save, torch.load and pickle keep the class and what programs stored."""
    def facts(torch):
        global Kept
        Kept = pairs(torch)
        Kept.__qualname__ = Kept.__name__ = "Kept"
        Kept.__module__ = __name__
        t, file = Kept(torch.arange(3.0), torch.ones(3)), io.BytesIO()
        torch.save({"t": t, "p": torch.nn.Parameter(t)}, file)
        file.seek(0)
        read = torch.load(file, weights_only=False)
        again = pickle.loads(pickle.dumps(t))
        return [(type(x).__name__, x.a.tolist(), x.b.tolist(), x.requires_grad) for x in (read["t"], read["p"], again)]
    assert facts(subject) == facts(oracle)


@same
def test_functions_that_look(torch):
    """What depends on values or names a device that is not there, and writes at several places."""
    Wrapper, log = logging(torch)
    w = Wrapper(torch.tensor([[1.0, 2.0, 2.0], [3.0, 0.0, 1.0]]))
    at = Wrapper(torch.zeros(3, 3))
    at[torch.tensor([0, 2]), :2] = 2.0
    at[Wrapper(torch.tensor([False, True, False]))] = 1.0
    made = [x.elem for x in (torch.unique(w), *torch.unique(w, return_counts=True), torch.bincount(Wrapper(torch.tensor([1, 2]))), w[w > 1], w.masked_select(w > 1),
                             w[torch.tensor([0]), 1:], w.cummax(1)[0], w.median(1)[0], w.nan_to_num(), w.unfold(1, 2, 1), w.cumprod(1), w.kthvalue(1)[0])]

    class Absent(torch.Tensor):
        @staticmethod
        def __new__(cls, shape, **kwargs):
            return torch.Tensor._make_wrapper_subclass(cls, shape, **kwargs)

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return Absent(args[0].shape, device=args[0].device)
    absent = Absent((2, 3), device="cuda", strides=(1, 2))
    return made, at.elem, str(absent.device), absent.stride(), str((absent + 1).device), type(w.new_tensor([1.0])).__name__


@same
def test_what_a_class_may_not_return(torch):
    """Torch's errors for results that are no tensors, and for a second class of what is an instance of one."""
    def of(result):
        class Returns(torch.Tensor):
            @staticmethod
            def __new__(cls):
                return torch.Tensor._make_wrapper_subclass(cls, (2,))

            @classmethod
            def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
                return args[0] if result == "itself" else result
        return Returns()

    class Other(torch.Tensor):
        pass

    def said(function):
        with pytest.raises(RuntimeError) as raised:
            function()
        return str(raised.value)
    return [said(f) for f in (of("a").neg, lambda: of(1).max(0), of((1,)).neg, of(1).detach, lambda: torch.Tensor._make_subclass(Other, of(1)),
                              lambda: of(1).as_subclass(Other))], error(of("itself").as_subclass, Other), of(torch.ones(3)).neg()


@same
def test_versions(torch):
    """Writes into what `detach` and views give count, those into `data` do not."""
    Wrapper, _ = logging(torch)
    w = Wrapper(torch.ones(2, 2))
    versions = [w._version]
    for write in (lambda: w.detach().add_(1), lambda: w.view(4).mul_(2), lambda: w.data.add_(1), lambda: w.add_(1)):
        write()
        versions.append(w._version)
    return versions, w.elem


@same
def test_modes_and_classes(torch):
    """A mode that declines, one of the machinery, one whose method is of the class, and blocks in which nobody is asked."""
    u, only, seen = utils(torch), tree(torch).tree_map_only, []
    no_dispatch = importlib.import_module(f"{torch.__name__}.utils._mode_utils").no_dispatch

    class Polite(u.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(len(types))
            return NotImplemented if types else func(*args, **(kwargs or {}))

    class Infra(u.TorchDispatchMode):
        @classmethod
        def is_infra_mode(cls):
            return True

    class OfClass(u.TorchDispatchMode):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    class Inner(torch.Tensor):
        @staticmethod
        def __new__(cls, e):
            made = torch.Tensor._make_wrapper_subclass(cls, e.shape)
            made.e = e
            return made

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return func(*only(Inner, lambda t: t.e, args), **(kwargs or {}))

    class Nothing(Inner):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return None
    x = Inner(torch.ones(2))
    with Polite():
        made = x.abs()
        with no_dispatch():
            torch.ones(2).abs()
    with Infra():
        infra = u.is_in_torch_dispatch_mode(), u.is_in_torch_dispatch_mode(include_infra_modes=False)

    def of_class():
        with OfClass():
            torch.ones(2) + 1
    return made, type(made).__name__, seen, infra, error(of_class), Nothing(torch.ones(2)) + 1


@same
def test_training_under_a_mode(torch):
    """A mode sees what the class sees after it; the numbers stay the same."""
    nn = torch.nn
    Wrapper, log = logging(torch)

    class Count(utils(torch).TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            counted.append(str(func))
            return func(*args, **(kwargs or {}))
    counted, losses = [], []
    for wrap in (Wrapper, lambda t: t):
        model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(2, 2))
        for p in model.parameters():
            nn.init.constant_(p, .1)
        optimizer = torch.optim.Adam(model.parameters(), lr=.01)
        with Count():
            for i in range(3):
                optimizer.zero_grad()
                loss = model(wrap(torch.arange(50.0).reshape(2, 1, 5, 5).mul(i + .1).sin())).pow(2).mean()
                loss.backward()
                optimizer.step()
                losses.append(round(loss.item(), 5))
    return losses, {"aten.convolution.default", "aten.mm.default"} <= set(counted), bool(log)


@same
def test_differentiated_inside(torch):
    """Where a class asks for it, what it calls is differentiated: then its results hold tensors with a graph."""
    only = tree(torch).tree_map_only

    class Inside(torch.Tensor):
        @staticmethod
        def __new__(cls, e):
            made = torch.Tensor._make_wrapper_subclass(cls, e.shape)
            made.e = e
            return made

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            with overrides.enable_reentrant_dispatch():
                return Inside(func(*only(Inside, lambda t: t.e, args), **(kwargs or {})))
    overrides = importlib.import_module(f"{torch.__name__}.overrides")
    x = torch.ones(2, requires_grad=True)
    out = Inside(x) * 3
    out.e.sum().backward()
    return out.requires_grad, x.grad


def test_what_is_refused(subject):
    """A write that would have to be differentiated through a view says so."""
    Two = pairs(subject)
    x = Two(subject.ones(3, requires_grad=True), subject.ones(3))
    with pytest.raises(NotImplementedError, match="on a view of a Two"):
        (x * 1)[0].mul_(2)
    with pytest.raises(NotImplementedError, match="'histc' looks at the values of a tensor, and those of a Two are known to its class only"):
        subject.histc(x)


@same
def test_answers(torch):
    """Wrappers whose classes are asked how large they are and where."""
    aten, prim = torch.ops.aten, torch.ops.prim
    asked = []

    def of(**kwargs):
        class Answers(torch.Tensor):
            @staticmethod
            def __new__(cls):
                return torch.Tensor._make_wrapper_subclass(cls, (4, 2), **kwargs)

            @classmethod
            def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
                asked.append(str(func))
                known = {aten.sym_size.default: (5, 3), aten.sym_stride.default: (3, 1), aten.dim.default: 2, aten.is_contiguous.default: False,
                         aten.sym_numel.default: 15, aten.sym_storage_offset.default: 7, prim.device.default: torch.device("cpu"), prim.layout.default: torch.strided}
                return known.get(func, NotImplemented)
        return Answers()
    made = []
    for t in (of(dispatch_sizes_strides_policy="sizes"), of(dispatch_sizes_strides_policy="strides"), of(dispatch_device=True, dispatch_layout=True)):
        made += [t.shape, t.size(), t.size(0), t.stride(), t.dim(), t.ndim, t.numel(), t.is_contiguous(), t.storage_offset(), len(t), str(t.device),
                 str(t.layout), error(lambda t=t: t + 1)]
    return made, asked, error(of, dispatch_sizes_strides_policy="other")


def test_heirs_of_classes_that_take_functions_over(subject, oracle, tmp_path):
    """In a process of their own: what their base class was given knows of no dispatching classes."""
    program = [(Path(__file__).resolve().parent / "programs" / "dispatching_heirs.py", 0)]
    real, ours = (printed(torch, tmp_path, "torch.utils._pytree", program) for torch in (oracle, subject))
    assert ours == real and len(real[0]) > 5


@same
def test_functional_derivatives(torch):
    Wrapper, _ = logging(torch)
    functional = importlib.import_module(f"{torch.__name__}.autograd.functional")
    x, v = Wrapper(torch.linspace(0.2, 1, 3)), Wrapper(torch.tensor([1.0, 2.0, 3.0]))
    made = [functional.vjp(lambda x: (x ** 2).sum(), x), functional.vjp(lambda x: x ** 2, x, v), functional.jvp(lambda x: x * 2, x, v),
            functional.jacobian(lambda x: x ** 2, x), functional.hessian(lambda x: (x ** 3).sum(), x), functional.hvp(lambda x: (x ** 3).sum(), x, v),
            functional.vhp(lambda x: (x ** 3).sum(), x, v)]
    flat = [t for m in made for t in (m if isinstance(m, tuple) else (m,))]
    return [type(t).__name__ for t in flat], [t.elem for t in flat]


@same
def test_transforms_of_functions(torch):
    """torch.func's derivatives: an instance where torch gives one."""
    func, x, along = torch.func, torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 0.5, -1.0])
    Wrapper, _ = logging(torch)
    w = Wrapper(x)

    def f(x):
        return x.sin() * x

    def loss(x):
        return f(x).sum()
    made = (func.grad_and_value(loss)(w), func.vjp(f, w)[0], func.vjp(f, w)[1](along), func.jacrev(f)(w), func.jacrev(loss)(w), func.jacfwd(f)(w),
            func.hessian(loss)(w), func.jacrev(func.jacrev(loss))(w), func.jvp(f, (w,), (along,)), func.jvp(f, (w,), (Wrapper(along),)),
            func.jacfwd(lambda x: (f(x), x.cos()), has_aux=True)(w), func.jacfwd(lambda a, b: a * b, argnums=1)(w, x),
            func.jacrev(lambda a, b: a * b, argnums=1)(w, x))
    flat = [t for m in made for t in (m if isinstance(m, tuple) else (m,))]
    return ([type(t).__name__ for t in flat], [t.elem for t in flat],
            error(lambda: func.jvp(lambda x: torch.ones(3), (w,), (along,), strict=True)))


def test_linearize(subject):
    """PyTorch's loses what the class holds."""
    Wrapper, _ = logging(subject)
    x = subject.tensor([1.0, 2.0, 3.0])
    value, push = subject.func.linearize(lambda x: x.sin() * x, Wrapper(x))
    assert isinstance(value, Wrapper) and subject.equal(value.elem, x.sin() * x)
    assert subject.allclose(push(Wrapper(x)).elem, (x.sin() + x.cos() * x) * x)


@same
def test_second_derivatives_of_views(torch):
    Wrapper, _ = logging(torch)
    views = (lambda a: a.narrow(0, 0, 3), lambda a: a[1], lambda a: a[1:3, ::2], lambda a: a.diagonal(1), lambda a: a.unbind(1)[2], lambda a: a.split(2)[1],
             lambda a: a[:1].squeeze(0), lambda a: a.t()[2, 1:], lambda a: a.view(2, 8)[1])
    found = []
    for view in views:
        x = Wrapper(torch.linspace(0.1, 1, 16, dtype=torch.float64).reshape(4, 4).requires_grad_())
        g, = torch.autograd.grad(view(x).exp().sum(), x, create_graph=True)
        h, = torch.autograd.grad((g ** 2).sum(), x, create_graph=True)
        third, = torch.autograd.grad((h ** 2).sum(), x)
        found += [type(third).__name__, g.elem, h.elem, third.elem]
    return found


def test_the_second_derivative_of_a_convolution_is_refused(subject):
    torch = subject
    Wrapper, _ = logging(torch)
    x, w = Wrapper(torch.linspace(0.1, 1, 16).reshape(1, 4, 4).requires_grad_()), Wrapper(torch.ones(2, 4, 2))
    g, = torch.autograd.grad(torch.nn.functional.conv1d(x, w).exp().sum(), x, create_graph=True)
    with pytest.raises(NotImplementedError, match="second derivative of 'convolution'"):
        torch.autograd.grad((g ** 2).sum(), x)
    first, = torch.autograd.grad(torch.nn.functional.conv1d(x, w).exp().sum(), x)
    assert torch.equal(first.elem, g.elem) and not first.requires_grad


@same
def test_second_derivative_of_layer_norm(torch):
    Wrapper, _ = logging(torch)
    x, w = (Wrapper((torch.linspace(0.1, 1, n, dtype=torch.float64) ** 2).reshape(-1, 4).requires_grad_()) for n in (12, 4))
    y = torch.nn.functional.layer_norm(x, (4,), w[0], None)
    gx, gw = torch.autograd.grad((y ** 3).sum(), (x, w), create_graph=True)
    return [g.elem for g in (gx, gw, *torch.autograd.grad((gx ** 2).sum() + (gw ** 2).sum(), (x, w)))]


INDEXED = """x[:]; x[1:]; x[::2]; x[1:3]; x[...]; x[None]; x[mask]; x[i]; x[[True, False, True, False]]; x[x > 1]; m[:, :]; m[:, i]; m[i, i]; m[0, i]; m[1:, 0]; m[0:2, :]
m[mask[:3]]; m[:, mask]; m[m > 3]; m[i[:, None], i]; m[i, mask]; m[None, i]; m[:, None, i]; m[x[1:]]; torch.ones(5)[x]; m[1]; m[torch.tensor(1), 1:]
x.sort(); x.sort(stable=True); x.sort(0, True); torch.sort(x, stable=True, descending=True); x.argsort(); x.index_select(0, i)
torch.index_select(x, 0, i, out=torch.empty(0, dtype=torch.long)); torch.zeros(5).index_add(0, x, torch.ones(4)); torch.zeros(5).index_copy(0, x, torch.ones(4))
torch.searchsorted(x, i, right=True); m.__setitem__((i, 0), 1.); m.__setitem__(0, 1); x.__setitem__(slice(1, None), 3)
x.__setitem__(mask, 0); m.__setitem__((slice(None), i), 1.); m.__setitem__(m > 3, 0); torch.zeros(5).__setitem__(x, 1)
torch.zeros(5, 5).index_put_((x[:1], x[:1]), torch.tensor(1.)); m.t().contiguous(); m.contiguous(); m.clone(); m.t().clone(memory_format=torch.contiguous_format)"""
PROGRAMS = [program.strip() for line in INDEXED.split("\n") for program in line.split(";")]


@pytest.mark.parametrize("program", PROGRAMS)
def test_indices(oracle, subject, program):
    """A class sees indices as they were given: masks, negative steps to the end, itself among them."""
    def facts(torch):
        Wrapper, log = logging(torch)
        names = {"torch": torch, "x": Wrapper(torch.tensor([3, 1, 1, 2])), "m": Wrapper(torch.arange(12.).reshape(3, 4)), "i": torch.tensor([2, 0]),
                 "mask": torch.tensor([True, False, True, False])}
        out = eval(program, names)
        return log, [t.elem.tolist() if isinstance(t, Wrapper) else t if t is None else t.tolist() for t in (out if isinstance(out, tuple) else (out,))]
    assert facts(subject) == facts(oracle)


@same
def test_gradients_by_indices(torch):
    Wrapper, log = logging(torch)
    mask, i = torch.tensor([True, False, True]), torch.tensor([2, 0, 2])
    made = []
    for f in (lambda x: x[mask], lambda x: x[:, mask], lambda x: x[i], lambda x: x[i, i], lambda x: x[mask, :2], lambda x: x.sort(1)[0], lambda x: x[:], lambda x: x[...]):
        x = Wrapper(torch.arange(9.).reshape(3, 3).requires_grad_())
        (f(x) * f(x)).sum().backward()
        made.append(x.grad.elem)
    return made


def edges(torch):
    """Integers (2, n) that stand for a matrix."""
    class Edges(torch.Tensor):
        __torch_function__ = torch._C._disabled_torch_function_impl

        @staticmethod
        def __new__(cls, data, n):
            made = torch.Tensor._make_wrapper_subclass(cls, data.shape, dtype=data.dtype)
            made.elem, made.n = data, n
            return made

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return func(*[a.matrix() if isinstance(a, Edges) else a for a in args], **(kwargs or {}))

        def matrix(self):
            made = torch.zeros(self.n, self.n)
            made[self.elem[0], self.elem[1]] = torch.arange(1., 1 + self.elem.shape[1])
            return made
    return Edges(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), 3)


@same
def test_shapes_are_the_class_s_affair(torch):
    """What would not go together of plain tensors: the class says what it is."""
    F, e = torch.nn.functional, edges(torch)
    x = torch.arange(15.).reshape(3, 5).requires_grad_()
    v = torch.arange(3.).requires_grad_()
    ((e @ x).sum() + (e @ v).sum()).backward()
    y = x.detach()
    return (e @ y, torch.mm(e, y), e.mm(y), torch.matmul(e, y), y.t() @ e, e @ v.detach(), e.mv(v.detach()), torch.addmm(y, e, y), e + torch.ones(3, 3),
            torch.ones(3, 3) * e, F.linear(torch.ones(2, 3), e), F.linear(e, torch.ones(2, 3)), e.select(0, 2), e.view(9), e.softmax(0), e.mean(), e.std(),
            error(lambda: e * torch.ones(7)), error(lambda: e.select(0, 7)), error(lambda: e[2]), x.grad, v.grad)


@same
def test_attributes_called_as_the_engine_s(torch):
    """`_value`, `_layout`, `_alias` are names of torchlike's own, too: a class may have them."""
    class Holder(torch.Tensor):
        _value = None
        _layout: str
        __torch_function__ = torch._C._disabled_torch_function_impl

        @staticmethod
        def __new__(cls, data, layout="plain"):
            made = torch.Tensor._make_wrapper_subclass(cls, data.shape, dtype=data.dtype)
            made._value, made._layout, made.other = data, layout, 3
            return made

        def _alias(self):
            return "alias"

        def __tensor_flatten__(self):
            return ["_value"], self._layout

        @classmethod
        def __tensor_unflatten__(cls, inner, layout, size, stride):
            return cls(inner["_value"], layout)

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return cls(func(*[a._value if isinstance(a, Holder) else a for a in args], **(kwargs or {})), "made")

    class Below(Holder):
        _sorted = True

        def both(self):
            return self._value, self._layout, self._sorted
    a = Holder(torch.arange(3.))
    b, c, d = a + 1, copy.copy(a), copy.deepcopy(a)
    e = utils(torch).transform_subclass(a, lambda name, t: t * 2)
    del c._layout
    return (b._value, b._layout, Holder._value, b._alias(), sorted(vars(b)), vars(b)["_layout"], c._value, hasattr(c, "_layout"), d._value, d._layout, d.other,
            e._value, e._layout, Below(torch.ones(2)).both(), (Below(torch.ones(2)) * 2)._value)


@same
def test_printed_by_parts(torch):
    """The elements as a class shows them, and what torch adds."""
    printing = importlib.import_module(f"{torch.__name__}._tensor_str")
    Wrapper, _ = logging(torch)
    return [printing._str_intern(Wrapper(t), tensor_contents="[...]") for t in (
        torch.arange(3), torch.ones(2), torch.ones(2).double(), torch.ones(2, 2).int(), torch.ones(0, 3), torch.ones(2, requires_grad=True), torch.ones(2, device="meta"))]


@same
def test_vmap_and_vectorized_derivatives(torch):
    """An example after the other here: only results are compared."""
    Wrapper, _ = logging(torch)
    functional = importlib.import_module(f"{torch.__name__}.autograd.functional")
    x = torch.tensor([1.0, 2.0, 3.0])
    made = [functional.hessian(lambda t: (t * 2).exp().sum() * t.sum(), Wrapper(x), vectorize=True), functional.jacobian(lambda t: t ** 2, Wrapper(x), vectorize=True),
            torch.vmap(lambda t: t * 2)(Wrapper(x)), torch.vmap(lambda t, u: t * u, in_dims=(0, None), out_dims=1)(Wrapper(torch.ones(2, 3)), x)]
    return [type(m) is Wrapper for m in made], [m.elem for m in made]


def test_duals_are_refused():
    """In torch their class sees the tangents' operations; here they would be lost."""
    fa = importlib.import_module("torchlike.autograd.forward_ad")
    Wrapper, _ = logging(torchlike)
    x = torchlike.ones(3)
    with fa.dual_level():
        for primal, tangent in ((Wrapper(x), x), (x, Wrapper(x))):
            with pytest.raises(RuntimeError, match="torch.func.jvp"):
                fa.make_dual(primal, tangent)
    assert [y.elem.tolist() for y in torchlike.func.jvp(torchlike.square, (Wrapper(x),), (x,))] == [[1.0] * 3, [2.0] * 3]
    with fa.dual_level():
        dual, other = fa.make_dual(x, x), Wrapper(x * 4)
        for meet in (lambda: dual * other, lambda: torchlike.dot(other, dual), lambda: torchlike.cat([dual, other]), lambda: torchlike.stack([other, dual]),
                     lambda: Wrapper(x).mul_(dual), lambda: Wrapper(x).copy_(dual), lambda: operator.setitem(Wrapper(x), 0, dual[0])):
            with pytest.raises(NotImplementedError, match="forward derivative"):
                meet()
        assert fa.unpack_dual(dual == other).tangent is None and fa.unpack_dual(dual.detach() * other).tangent is None
        assert fa.unpack_dual(torchlike.zeros(3).copy_(other) * dual).tangent.tolist() == [4.0] * 3
    made = torchlike.func.jvp(torchlike.mul, (x, other), (x, torchlike.zeros(3)))
    assert [y.elem.tolist() for y in made] == [[4.0] * 3] * 2


@same
def test_products_of_what_does_not_lie_in_one_piece(torch):
    """No view flattens such tensors: they are copied on the way."""
    Wrapper, _ = logging(torch)
    F, w, b, m = torch.nn.functional, torch.arange(12.0).reshape(4, 3), torch.ones(4), torch.ones(2, 3, 5)
    made = []
    for f in (lambda x: F.linear(x.transpose(0, 1), Wrapper(w), Wrapper(b)), lambda x: F.linear(x.transpose(0, 1), Wrapper(w)), lambda x: x.transpose(0, 1) @ Wrapper(w.t()),
              lambda x: F.linear(x.unsqueeze(0).expand(2, 2, 5, 3).transpose(1, 2), Wrapper(w), Wrapper(b)), lambda x: x @ Wrapper(m),
              lambda x: x.unsqueeze(0).expand(4, 2, 5, 3).transpose(0, 1) @ Wrapper(m[:, None])):
        x = Wrapper(torch.arange(30.0).reshape(2, 5, 3).requires_grad_())
        y = f(x)
        y.sum().backward()
        made.append((y.elem, y.stride(), x.grad.elem))
    return made


@same
def test_dropout(torch):
    """PyTorch's operators, and its numbers."""
    Wrapper, log = logging(torch)
    F, made = torch.nn.functional, []
    for f in (lambda x: F.dropout(x, .3), lambda x: torch.dropout(x, .3, True), lambda x: torch.dropout(x, .3, False), lambda x: F.dropout(x, 1.), lambda x: F.dropout(x, 0.),
              torch.nn.Dropout(.4), torch.nn.Dropout(.4).eval()):
        x = Wrapper(torch.ones(4, 5, requires_grad=True))
        f(x).sum().backward()
        made.append(x.grad.elem)
    return made, [line.partition("(")[0] for line in log]


@same
def test_layers_under_a_mode(torch):
    """A mode that makes tensors of its class: parameters are of it."""
    Wrapper, _ = logging(torch)

    class Wrapping(utils(torch).TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            made = func(*args, **(kwargs or {}))
            return Wrapper(made) if isinstance(made, torch.Tensor) and not isinstance(made, Wrapper) else made
    with Wrapping():
        layer = torch.nn.Linear(3, 2, bias=False)
    return type(layer.weight).__name__, isinstance(layer.weight, torch.nn.Parameter), layer.weight.shape, layer.weight.requires_grad
