"""__torch_function__, torch.overrides, modes: against real torch."""
import subprocess
import sys
from importlib import import_module

import pytest
from forked import texts
from same import caught, error, same


def _logging(torch, log):
    class Logged(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            log.append((getattr(func, "__name__", "?"), tuple(t.__name__ for t in types)))
            return super().__torch_function__(func, types, args, kwargs or {})
    return Logged


@same
def test_subclass_sees_every_call(torch):
    log = []
    S = _logging(torch, log)
    s = torch.ones(2).as_subclass(S)
    del log[:]
    r = s + 1
    kinds = [type(x) is S for x in (r, torch.add(torch.ones(2), s), torch.stack([s, s]), torch.nn.functional.relu(s), s.sum(), s[0], s.mul(2).T)]
    s[0] = 5
    s.add_(1)
    plain = type(s.sum().item()), len(s), s.size(), s.dim(), bool((s == s).all())
    s.requires_grad_()
    (s * 2).sum().backward()
    return log, kinds, plain[1:], type(s.grad) is torch.Tensor


@same
def test_methods_asked_of_tensor_itself(torch):
    log, T = [], torch.Tensor

    class S(_logging(torch, log)):
        def neg(self):
            return super().neg()

        def size(self, *dim):
            return super().size(*dim)
    s = torch.ones(2, 3).as_subclass(S)
    del log[:]
    kinds = [type(x) is S for x in (s.neg(), T.abs(s), T.sum(s, 0), T.detach(s), T.clone(s), T.reshape(s, (3, 2)), T.float(s), T.requires_grad_(s))]
    return kinds, s.size(), s.size(1), type(T.abs(torch.ones(2))) is T, log


@same
def test_operators_of_a_class_that_call_tensors_own(torch):
    log = []

    class S(_logging(torch, log)):
        def __add__(self, other):
            return super().__add__(other)

        def __rmul__(self, other):
            return super().__rmul__(other)

        def __eq__(self, other):
            return super().__eq__(other)

        def __iadd__(self, other):
            return super().__iadd__(other)
    s, t = torch.ones(2).as_subclass(S), torch.ones(2)
    del log[:]
    found = [s + 1, s + t, t + s, 2 * s, t * s, s * t, s == t, t == s, s - t, t - s]
    s += 1
    seen = list(log)
    return [(type(x).__name__, x.as_subclass(torch.Tensor)) for x in (*found, s)], seen, type(t + t) is torch.Tensor


@same
def test_words_about_arguments_beside_such_a_class(torch):
    _logging(torch, [])
    x, one = torch.ones(2, 3), torch.tensor([1])
    return [str(caught(f, *args)) for f, *args in ((x.view, 1.5), (x.reshape, 2, 1.5), (x.expand, 2.0, 3), (x.unfold, 1, one, 1), (x.roll, 1.0), (x.rot90, one))]


@same
def test_tensors_by_name_beside_such_a_class(torch):
    """Of functions whose methods look at their tensor's class."""
    S = _logging(torch, log := [])
    x, found = torch.tensor([[0.5, 0.25], [0.125, 1.0]]), []
    for name, more in (("sqrt", {}), ("signbit", {}), ("det", {}), ("tril", {"diagonal": 1}), ("ravel", {}), ("tile", {"dims": (2,)}), ("hsplit", {"sections": 2})):
        found += [getattr(torch, name)(input=x, **more), getattr(torch, name)(input=x.as_subclass(S), **more)]
    return found, [name for name, _ in log], caught(torch.q_scale, input=x)[0]


@same
def test_split_asks_its_class_before_its_method(torch):
    class Split:
        def split(self, *args):
            return "the method"

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__
    return torch.split(Split(), 2)


@same
def test_recurrent_layers_are_one_call(torch):  # torchview draws what it sees
    log = []
    S = _logging(torch, log)
    nn, seen = torch.nn, []
    for layer, x in ((nn.LSTM(4, 3, 2), torch.ones(5, 2, 4)), (nn.GRU(4, 3, bidirectional=True), torch.ones(5, 4)), (nn.RNN(4, 3), torch.ones(5, 2, 4)),
                     (nn.RNN(4, 3, nonlinearity="relu", batch_first=True), torch.ones(5, 2, 4)), (nn.LSTMCell(4, 3), torch.ones(2, 4)),
                     (nn.GRUCell(4, 3), torch.ones(2, 4)), (nn.RNNCell(4, 3), torch.ones(4))):
        del log[:]
        found = layer(x.as_subclass(S))
        flat = torch.utils._pytree.tree_leaves(found)
        seen.append(([name for name, _ in log if name.startswith(("lstm", "gru", "rnn", "new_"))], [type(t) is S for t in flat], flat))
    return seen


@same
def test_functions_of_recurrent_layers(torch):
    torch.manual_seed(0)
    x, h, weights = torch.ones(5, 2, 4), torch.zeros(1, 2, 3), list(torch.nn.LSTM(4, 3).parameters())
    cell = [w.detach() for w in weights]
    short = list(torch.nn.RNN(4, 3).parameters())
    return (torch.lstm(x, (h, h), weights, True, 1, 0.0, False, False, False), torch.lstm_cell(x[0], (h[0], h[0]), *cell), torch.gru_cell(x[0], h[0], *(
        w[:9] if w.ndim == 1 else w[:9] for w in cell)), torch.rnn_tanh(x, h, short, True, 1, 0.0, False, False, False),
        torch._VF.rnn_relu(x, h, short, True, 1, 0.0, False, False, False), torch._VF.rnn_tanh_cell(x[0], h[0], *short), torch.rnn_relu_cell(x[0], h[0], *short),
        error(torch.lstm, x), error(torch.rnn_tanh, x, h, short[:1], True, 1, 0.0, False, False, False), hasattr(torch.Tensor, "lstm"))


@same
def test_class_that_is_no_tensor(torch):
    overrides = import_module(torch.__name__ + ".overrides")

    class Scalar:
        handled = {}

        def __init__(self, value):
            self.value = value

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func not in cls.handled:
                return NotImplemented
            return cls.handled[func](*args, **(kwargs or {}))
    Scalar.handled[torch.mean] = lambda x: x.value
    Scalar.handled[torch.Tensor.add] = lambda a, b: "add"
    x = Scalar(3)
    return (torch.mean(x), torch.ones(2) + x, caught(torch.exp, x), caught(torch.stack, [x]), overrides.is_tensor_like(x), overrides.is_tensor_like(3),
            overrides.has_torch_function((1, x)), overrides.has_torch_function_unary(x),
            overrides.is_tensor_method_or_property(torch.Tensor.add), overrides.resolve_name(torch.mean))


@same
def test_class_that_hands_its_attributes_on_to_a_tensor(torch):
    """It has a tensor's `__float__` by name, but float() does not take it."""
    class Held:
        def __init__(self, data): self.data = data
        def __getattr__(self, name): return getattr(self.data, name)

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return Held(func(*(a.data if isinstance(a, Held) else a for a in args), **(kwargs or {})))

    t, h = torch.tensor([1., 2.]), Held(torch.tensor([3., 5.]))
    u = t.clone()
    u += h
    return [x.tolist() for x in (t + h, t - h, t * h, t / h, t // h, t % h, t ** h, t < h, t == h, t @ h, u)], type(t * h) is Held, type(u) is Held


@same
def test_lists_of_functions(torch):
    """For a sample: whether classes can take it over, whether that is said not to be so, its name, and what its stand-in returns."""
    overrides = import_module(torch.__name__ + ".overrides")
    by_scope, left_out, stand_ins = overrides.get_overridable_functions(), overrides.get_ignored_functions(), overrides.get_testing_overrides()
    listed = [f for functions in by_scope.values() for f in functions]
    F, T = torch.nn.functional, torch.Tensor
    sample = (torch.add, torch.cat, torch.where, torch.full_like, torch.zeros_like, torch.reshape, torch.permute, torch.lerp, F.linear, F.relu, F.softmax,
              T.add, T.add_, T.view, T.__getitem__, T.backward, T.grad.__get__, T.shape.__get__, T.requires_grad_, torch.fft.fft, torch.svd,
              torch.zeros, torch.arange, torch.tensor, torch.as_tensor, torch.rand_like, torch.normal, torch.is_tensor, torch.save, torch.initial_seed,
              torch.set_num_threads, torch.is_grad_enabled, F.sigmoid, F.tanh, F.upsample, torch.nn.init.constant, torch.fft.fftfreq, T.new_zeros)
    return ([(f in listed, f in left_out, overrides.resolve_name(f)) for f in sample], T in by_scope, torch in by_scope, torch.nn.functional in by_scope,
            T.grad in by_scope, [stand_ins[f](*a) for f, a in ((torch.cat, ([],)), (F.relu, (1,)), (T.add, (1, 2)))],
            not any(f in left_out for f in listed))


@same
def test_stand_ins_refuse_other_arguments(torch):
    stand_ins = import_module(torch.__name__ + ".overrides").get_testing_overrides()
    return [caught(stand_ins[f], *args)[0] for f, args in ((torch.cat, ()), (torch.nn.functional.linear, (1, 2, 3, 4)))]


@same
def test_subclass_before_base(torch):
    log = []

    class A(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            log.append((cls.__name__, [t.__name__ for t in types]))
            return NotImplemented

    class B(A):
        pass
    a, b = torch.ones(1).as_subclass(A), torch.ones(1).as_subclass(B)
    return caught(torch.add, a, b), log


@same
def test_mode(torch):
    overrides = import_module(torch.__name__ + ".overrides")
    log = []

    class Mode(overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            log.append(func.__name__)
            return func(*args, **(kwargs or {}))
    with Mode():
        x = torch.ones(2) + 1
        torch.nn.functional.relu(x)
    y = torch.ones(2) * 2
    return log[:3], x, y


@same
def test_mode_is_told_of_initial_values(torch):
    """A mode that leaves initial values out (Lightning's) gets four functions; norms' ones are written all the same."""
    init, told = torch.nn.init, []

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            if getattr(function, "__module__", "") == init.__name__:
                told.append((function.__name__, len(args), sorted(kwargs)))
                return kwargs["tensor"]
            return function(*args, **(kwargs or {}))

    with Mode():
        for fill in ("uniform_", "normal_", "trunc_normal_", "ones_", "zeros_", "eye_", "xavier_uniform_", "xavier_normal_", "kaiming_uniform_", "kaiming_normal_",
                     "orthogonal_"):
            getattr(init, fill)(torch.zeros(3, 3))
        init.constant_(torch.zeros(3), 2.0)
        norm = torch.nn.LayerNorm(3)
        torch.nn.Linear(2, 2)
    return told, norm.weight


@same
def test_subclass_without_torch_function_spreads(torch):
    class T(torch.Tensor):
        pass
    t = torch.ones(2).as_subclass(T)
    return [type(x) is T for x in (t + 1, torch.ones(2) + t, t.view(2, 1), torch.cat([t, t]), t.clone().add_(1), t[:1])]


@same
def test_encoder_layers_know_relu_beside_such_a_class(torch):
    """Their default was taken before functions began to dispatch."""
    torch.ones(2).as_subclass(_logging(torch, []))
    layer = torch.nn.TransformerEncoderLayer
    return [layer(4, 2).activation_relu_or_gelu, layer(4, 2, activation="gelu").activation_relu_or_gelu, layer(4, 2, activation=torch.nn.functional.relu).activation_relu_or_gelu,
            layer(4, 2, activation=torch.nn.ReLU()).activation_relu_or_gelu, layer(4, 2, activation=torch.tanh).activation_relu_or_gelu]


@same
def test_own_torch_function_decides_the_class(torch):
    """Inside DisableTorchFunctionSubclass functions make plain tensors, whatever they were given; torchvision's tv_tensors count on it."""
    class Own(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            with torch._C.DisableTorchFunctionSubclass():
                return func(*args, **(kwargs or {}))

    class Default(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return super().__torch_function__(func, types, args, kwargs)

    found = []
    for cls in (Own, Default):
        x = torch.arange(6.0).reshape(2, 3).as_subclass(cls)
        x.note = "mine"
        made = (x + 1, x.detach(), x.clone(), x[0], x.T, x.data, x.sum(), torch.stack([x, x]), x.to(torch.float64), x.float(), x.as_subclass(torch.Tensor))
        found += [type(y).__name__ for y in made] + [hasattr(y, "note") for y in made]
    return found


@same
def test_methods_that_a_program_adds_do_not_dispatch(torch):
    """fastai gives Tensor methods of its own and calls them on subclasses that refuse each other."""
    class First(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    torch.Tensor.added_by_a_program = lambda self, other: (type(self).__name__, type(other).__name__)
    try:
        class Second(First):
            pass
        return torch.ones(2).as_subclass(First).added_by_a_program(torch.ones(2).as_subclass(Second))
    finally:
        del torch.Tensor.added_by_a_program


@same
def test_a_mode_sees_the_functions_that_layers_call(torch):
    log = []

    class Names(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            log.append(func.__name__)
            return func(*args, **(kwargs or {}))

    nn, x = torch.nn, torch.ones(1, 2, 4, 4)
    layers = nn.Conv2d(2, 2, 1), nn.ConvTranspose2d(2, 2, 1), nn.AvgPool2d(2), nn.AdaptiveAvgPool2d(1)
    with Names():
        for layer in layers:
            layer(x)
    return [name for name in log if "conv" in name or "pool" in name]


@same
def test_parameters_take_nothing_over(torch):  # torchview asks a Parameter's class to call a function
    log = []
    S = _logging(torch, log)
    x, P = torch.ones(2, 3).as_subclass(S), torch.nn.Parameter
    found = P.__torch_function__(torch.nn.functional.linear, (S,), (x, P(torch.ones(4, 3))))
    del log[:]

    class Own(P):
        pass
    kinds = [type(t) is torch.Tensor for t in (found, P(torch.ones(1)) + 1, Own(torch.ones(1)) * 2)]
    return kinds, found, torch.overrides.has_torch_function((P(torch.ones(1)), Own(torch.ones(1)))), log, type(x @ P(torch.ones(3, 1))) is S


OTHERS = """
import importlib, pickle, sys
torch = importlib.import_module(sys.argv[1])
F, add, t = torch.nn.functional, torch.add, torch.ones(2, 2)
names = {torch.add: "add", torch.matmul: "matmul", torch.cat: "cat", torch.relu_: "relu_", F.linear: "linear",
         torch.linalg.norm: "norm", torch.Tensor.sub: "Tensor.sub", F.relu: "relu", F.conv1d: "conv1d", F.layer_norm: "layer_norm"}
class Other:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return names.get(func, func), [t.__name__ for t in types], len(args), sorted(kwargs or {})
other = Other()
calls = {"add": lambda: add(other, t), "cat": lambda: torch.cat([t, other]), "out": lambda: torch.add(t, t, out=other),
         "matmul": lambda: torch.matmul(t, other), "relu_": lambda: torch.relu_(other), "linear": lambda: F.linear(other, t),
         "relu": lambda: F.relu(other)[:3], "conv1d": lambda: F.conv1d(t, other), "layer_norm": lambda: F.layer_norm(other, [2])[:3],
         "norm": lambda: torch.linalg.norm(other), "sub": lambda: t.sub(other), "keyword": lambda: torch.add(t, alpha=2, other=other)}
print(calls[sys.argv[2]](), [calls[name]() for name in calls])
print(torch.add is add, all(pickle.loads(pickle.dumps(f)) is f for f in (torch.add, F.relu, torch.relu_)))
print(F.relu(-t).sum(), torch.relu_(-t).sum(), torch.nn.ReLU()(t).sum(), torch.nn.Linear(2, 2)(t).shape)
try:
    torch.add("x", t)
except TypeError as error:
    print("TypeError")
"""


def printed_alike(folder, subject, code, *cases):
    """What `code` prints for each case as a first call in its process, the same under both libraries."""
    want, got = (texts(folder, library, code, cases) for library in ("torch", subject.__name__))
    assert got == want
    return list(got.values())


def test_a_class_that_is_no_tensor_without_importing_overrides(subject, tmp_path):
    """Its handler is asked from the first call on, for the function objects that programs held before."""
    found = printed_alike(tmp_path, subject, OTHERS, "add", "cat", "out", "relu_", "sub", "keyword", "relu", "conv1d", "layer_norm")
    assert all(text.count("\n") == 4 for text in found)


METHODS = """
import importlib, sys
torch = importlib.import_module(sys.argv[1])
T, t = torch.Tensor, torch.ones(2, 2)
names = {T.matmul: "matmul", T.mul: "mul", T.add: "add", T.eq: "eq", T.pow: "pow", T.mm: "mm", T.maximum: "maximum", T.clamp: "clamp", T.div: "div"}
class Other:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return names.get(func, func), [type(a).__name__ for a in args]
o = Other()
calls = [lambda: t.matmul(o), lambda: t.mul(o), lambda: t * o, lambda: t @ o, lambda: t.eq(o), lambda: t.pow(o), lambda: t.mm(o), lambda: t.maximum(o),
         lambda: t.clamp(o), lambda: t / o, lambda: t.matmul(other=o)[0], lambda: t.clamp(max=o)[0]]
if sys.argv[2] == "sparse":
    torch.eye(3).to_sparse()
print([f() for f in calls])
for f in (lambda: t.mul("a"), lambda: t @ "a", lambda: t.matmul(3), lambda: t.mm(None), lambda: t.mul()):
    try:
        f()
    except TypeError as error:
        print(str(error).split("(")[0])
"""


def test_methods_ask_a_class_that_is_no_tensor(subject, tmp_path):
    """linear_operator's `tensor.matmul(operator)`, `tensor @ operator`, by tables of methods, also once there was a sparse tensor."""
    assert all(text.count("\n") == 6 for text in printed_alike(tmp_path, subject, METHODS, "nothing", "sparse"))


FRAMES = """
import sys, torchlike as torch
class Other:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        raise NotImplementedError("no")
for f in (torch.add, torch.relu, torch.linalg.inv, torch.nn.functional.relu, torch.exp, torch.where, torch.max):
    try:
        f(Other())
    except NotImplementedError as error:
        trace = error.__traceback__
        while trace:
            print(len(trace.tb_frame.f_locals))
            trace = trace.tb_next
"""


def test_frames_of_functions_that_dispatch_can_be_read():  # by debuggers, and by pytest where a test fails: it was a segmentation fault
    run = subprocess.run([sys.executable, "-c", FRAMES], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0 and run.stdout.count("\n") > 20, (run.returncode, run.stderr)


@same
def test_a_mode_names_what_it_sees_as_programs_do(torch):
    """Handlers compare functions with tables made before the mode, and with names looked up while it is on."""
    T, seen = torch.Tensor, []

    def table():
        return {T.reshape: "reshape", T.T.__get__: "T", T.grad.__get__: "grad", T.grad.__set__: "grad set", T.add: "add", torch.add: "torch.add",
                T.__getitem__: "item", T.__len__: "len"}
    before = table()

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append((before.get(func), table().get(func), torch.overrides.resolve_name(func), torch.overrides.is_tensor_method_or_property(func)))
            return func(*args, **(kwargs or {}))

    x = torch.ones(2, 3, requires_grad=True)
    with Mode():
        (x.T.reshape(6) + 1).add(2).sum().backward()
        x.grad.data.zero_()
        x.grad = None
        torch.add(x, x[0]), len(x), x.size(), x.shape, x.requires_grad
        del x.grad
    x.T.reshape(6).add(1)
    return seen


@same
def test_modes_see_what_functions_written_in_python_call(torch):
    """Of what is Python in PyTorch, too: the functions that torch has, by the order in which they were first called."""
    from importlib import import_module

    data, functional = (import_module(f"{torch.__name__}.{name}") for name in ("utils.data", "autograd.functional"))
    known = set("""_sample_dirichlet _standard_gamma as_tensor cat empty lobpcg linalg_eigh linalg_norm linalg_qr linalg_svd multinomial pca_lowrank randn randperm
                stack svd_lowrank tensor view_as_real""".split())
    x, wide = torch.tensor([1.0, 2.0]), torch.arange(20.0).reshape(4, 5).sin()

    class Mode(torch.overrides.TorchFunctionMode):
        def __init__(self):
            super().__init__()
            self.seen = {}

        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.seen[func.__name__] = True
            return func(*args, **(kwargs or {}))

    class Own(torch.Tensor):
        pass

    def seen(f, *args):
        with Mode() as mode:
            f(*args)
        return [name for name in mode.seen if name in known]

    def step(p):
        def closure():
            loss = (p.abs() * p.abs()).sum()
            loss.backward()
            return loss
        torch.optim.LBFGS([p], max_iter=1).step(closure)

    made = functional.jacobian(torch.sin, x.as_subclass(Own)), functional.hessian(lambda x: x.sin().sum(), x.as_subclass(Own))
    return ([type(m).__name__ for m in made],
            seen(functional.jacobian, torch.sin, x), seen(step, x.clone().requires_grad_()), seen(step, torch.complex(x, x).requires_grad_()),
            [seen(f, wide) for f in (torch.svd_lowrank, torch.pca_lowrank)], [seen(f, wide.as_subclass(Own)) for f in (torch.svd_lowrank, torch.pca_lowrank)],
            "lobpcg" in seen(torch.lobpcg, wide @ wide.T), seen(data.default_collate, [1.0, 2.0]), seen(data.random_split, [1, 2, 3], [1, 2]),
            seen(list, data.RandomSampler([1, 2])), seen(list, data.SubsetRandomSampler([1, 2])),
            seen(lambda: list(data.WeightedRandomSampler([0.5, 0.5], 2))), seen(list, data.DataLoader([1.0, 2.0], shuffle=True)),
            seen(torch.distributions.Gamma(x, x).rsample), seen(torch.distributions.Dirichlet(x).rsample))


@same
def test_a_mode_that_its_handler_enters_again_stays_on(torch):
    seen = []

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            with self:
                pass
            return func(*args, **(kwargs or {}))
    x = torch.ones(2)
    with Mode():
        y = x.mul(2)
        y.mul(3), torch.add(y, 1), y.T
    y.mul(2)
    return seen


@same
def test_a_mode_is_told_of_classes_that_keep_tensors_own_function(torch):
    seen = []

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append((func.__name__, [t.__name__ for t in types]))
            return NotImplemented if types else func(*args, **(kwargs or {}))

    class Quiet(torch.Tensor):
        pass
    x, p = torch.ones(2).as_subclass(Quiet), torch.nn.Parameter(torch.ones(2))
    with Mode():
        results = [torch.neg(x), x + 1, p * 2]
    def doubled(t):
        if torch.overrides.has_torch_function((t,)):
            seen.append("asked")
            return torch.overrides.handle_torch_function(doubled, (t,), t)
        return torch.ones(2) * 2
    results += [doubled(x), doubled(p), doubled(torch.ones(2))]
    return results, [type(r).__name__ for r in results], seen


OPERATORS = """x << 1; x >> 1; 1 << x; 8 >> x; 1 & x; 1 | x; 1 ^ x; +x; ~x; reversed(x); complex(x[0]); x.__array__(); torch.tensor(x); torch.as_tensor(x).tolist()
torch.zeros(4).index_put_((x,), torch.ones(2)); x.storage().size()"""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("text", [t.strip() for t in OPERATORS.replace("\n", ";").split(";")])
@same
def test_operators_of_subclasses(torch, text):
    """The result's class, and the functions that a handler sees: not the questions that the functions themselves ask."""
    log = []
    x = torch.tensor([1, 2]).as_subclass(_logging(torch, log))
    del log[:]
    result = eval(text, {"torch": torch, "x": x})
    seen = [name for name, _ in log]
    names = type(result).__name__ if not isinstance(result, torch.Tensor) or "index_put_" not in text else ""
    return result, names, "" if "index_put_" in text else seen


def _scaled_sum(torch):
    def scaled_sum(a, b):
        if torch.overrides.has_torch_function((a, b)):
            return torch.overrides.handle_torch_function(scaled_sum, (a, b), a, b)
        return (a * b + 1).sum()
    return scaled_sum


@same
def test_redispatch_passes_over_one_question(torch):
    seen, scaled_sum = [], _scaled_sum(torch)

    class Logged(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args, kwargs=None):
            result = torch.overrides.redispatch_function(func, types, args, kwargs)
            seen.append((func.__name__, type(result).__name__))
            return result
    x, y = Logged(torch.tensor([3.0])), Logged(torch.tensor([4.0]))
    del seen[:]
    results = [scaled_sum(x, y), torch.nn.functional.softplus(x), x.mT if x.dim() > 1 else x.sum(), x.requires_grad, x[0]]
    results.append(torch.overrides.redispatch_function(lambda t: t + 1, (Logged,), (x,), {}))
    return results, [type(r).__name__ for r in results], seen


@same
def test_redispatch_under_a_mode(torch):
    seen, scaled_sum = [], _scaled_sum(torch)

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            with self:
                return torch.overrides.redispatch_function(func, types, args, kwargs)
    a, b = torch.tensor([3.0]), torch.tensor([4.0])
    with Mode():
        result = scaled_sum(a, b)
        result.reshape(1).neg(), torch.stack([a, b]), a.ndim
    return result, seen


COMPOSED = """
import importlib, sys
torch = importlib.import_module(sys.argv[1])
class Other:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return {torch.linalg.inv: "inv", torch.inverse: "inverse", torch.linalg.pinv: "pinv", torch.logdet: "logdet"}.get(func, func)
print(eval(sys.argv[2])(Other()), torch.linalg.inv(torch.eye(2)).sum())
"""


def test_the_first_call_is_the_programs_own(subject, tmp_path):
    """linalg.inv calls inv_ex, of which a class may know nothing."""
    assert all(printed_alike(tmp_path, subject, COMPOSED, "torch.linalg.inv", "torch.inverse", "torch.linalg.pinv", "torch.logdet"))


def test_names_of_the_c_part_alone_load_nothing():
    """Completion in a notebook imports torch._C, and so do libraries: functions must not look at their arguments for that."""
    code = ("import sys, torchlike as torch, torchlike._C; add = torch.add; torch._C.DisableTorchFunctionSubclass; "
            "assert not hasattr(add, '_dispatches') and 'torchlike.overrides' not in sys.modules; "
            "assert torch.overrides.resolve_name(add) and hasattr(add, '_dispatches')")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


@same
def test_a_mode_sees_what_distributions_call(torch):
    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, f, types, args=(), kwargs=None):
            seen.append(getattr(f, "__name__", "?"))
            return f(*args, **(kwargs or {}))

    D, one, found = torch.distributions, torch.ones(3), []
    for d in (D.Uniform(one, one * 2), D.Normal(one, one), D.Bernoulli(one / 2), D.Categorical(one / 3), D.Poisson(one), D.Gamma(one, one), D.Beta(one, one)):
        for call in (d.sample, lambda d=d: d.log_prob(d.sample())):
            seen = []
            with Mode():
                call()
            found.append([name for name in seen if name in ("rand", "normal", "bernoulli", "multinomial", "poisson", "lgamma", "xlogy")])
    return found


ANSWERED = """
import importlib, sys
torch = importlib.import_module(sys.argv[1])
from importlib import import_module
TorchFunctionMode = import_module(sys.argv[1] + ".overrides").TorchFunctionMode

class Names(TorchFunctionMode):
    names = []
    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.names.append(func.__name__)
        return func(*args, **(kwargs or {}))

class Seven(torch.Tensor):
    @staticmethod
    def __new__(cls, t):
        return torch.Tensor._make_wrapper_subclass(cls, t.shape, dtype=t.dtype, dispatch_sizes_strides_policy="sizes")
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return (7,) if func is torch.ops.aten.sym_size.default else 1

class Rows(torch.nn.Module):
    def forward(self, x):
        return x.view(x.size(0) * x.size(1)) + 1

with Names():  # from here on methods look for modes
    torch.ones(2).size()
seven = Seven(torch.ones(2))  # and from here on size() asks classes
with Names() as seen:
    print(seven.size(), torch.ones(2, 3).size(1), torch.ones(2, 3).stride(), seen.names)
print(import_module(sys.argv[1] + ".export").export(Rows(), (torch.ones(2, 3),)).module()(torch.ones(2, 3)))
"""


def test_answers_of_a_wrapper_after_a_mode(subject, tmp_path):
    """A mode that goes on within the call, as torch.export's, comes to the answers and not to itself."""
    assert printed_alike(tmp_path, subject, ANSWERED, "")[0].count("\n") == 2
