"""torch.library: which kernel runs, by the layers of the dispatcher, beside real torch."""
import itertools

from same import error, same

_number = itertools.count()


def _defined(torch, *schemas):
    space = f"kernels{next(_number)}"
    library = torch.library.Library(space, "FRAGMENT")
    for schema in schemas:
        library.define(schema)
    return library, getattr(torch.ops, space), space


def words(function, *args):
    try:
        function(*args)
    except Exception as raised:
        return type(raised).__name__, str(raised)[:120]
    return "no error"


@same
def test_devices_before_composites(torch):
    library, ops, _ = _defined(torch, "f(Tensor x) -> Tensor")
    found = [error(ops.f, torch.ones(2))]
    library.impl("f", lambda x: x * 2, "CompositeImplicitAutograd")
    found.append(ops.f(torch.ones(2, requires_grad=True)))
    library.impl("f", lambda x: x * 3, "CPU")
    found.append(ops.f(torch.ones(2, requires_grad=True)))
    library.impl("f", lambda x: x * 4, "")
    return found, ops.f(torch.ones(2)), ops.f(torch.ones(2, device="meta")).shape


@same
def test_autograd_layer(torch):
    """Runs for whatever is no tensor of inference mode, and below it nothing is differentiated."""
    library, ops, _ = _defined(torch, "f(Tensor x) -> Tensor")
    asked = []

    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            asked.append("forward")
            with torch._C._AutoDispatchBelowAutograd():
                return ops.f(x)

        @staticmethod
        def backward(ctx, g):
            return g * 7

    library.impl("f", lambda x: x.sin(), "CPU")
    library.impl("f", Doubled.apply, "Autograd")
    x = torch.ones(2, requires_grad=True)
    ops.f(x).sum().backward()
    found = [ops.f(torch.ones(2)), x.grad, list(asked)]
    with torch.inference_mode():
        found.append(ops.f(torch.ones(2)))
    guard = torch._C._AutoDispatchBelowAutograd()
    inside = (x * 2).requires_grad
    del guard
    return found, len(asked), inside, (x * 2).requires_grad


@same
def test_keys_of_a_call(torch):
    key = torch._C.DispatchKey
    library, ops, _ = _defined(torch, "f(Tensor x) -> Tensor")
    seen = []

    def first(keys, x):
        seen.append((keys.has(key.CPU), keys.has(key.AutogradCPU), keys.has(key.CUDA)))
        return ops.f.default.redispatch(keys & torch._C._after_autograd_keyset, x) * 10
    library.impl("f", lambda x: x.exp(), "CPU")
    library.impl("f", first, "AutogradCPU", with_keyset=True)
    both = torch._C.DispatchKeySet(key.CPU) | torch._C.DispatchKeySet(key.AutogradCPU)
    cpu = torch._C.DispatchKeySet(key.CPU)
    return ops.f(torch.zeros(2)), seen, repr(both), repr(both & cpu), repr(both - cpu)


@same
def test_fallthrough(torch):
    library, ops, _ = _defined(torch, "f(Tensor x) -> Tensor")
    library.impl("f", lambda x: x * 2, "CompositeExplicitAutograd")
    library.impl("f", torch.library.fallthrough_kernel, "AutocastCPU")
    with torch.autocast("cpu"):
        return ops.f(torch.ones(2)), error(torch.library.fallthrough_kernel)


@same
def test_layouts(torch):
    library, ops, _ = _defined(torch, "f(Tensor x) -> Tensor")
    library.impl("f", lambda x: x * 2, "CPU")
    library.impl("f", lambda x: x.to_dense() * 3, "SparseCPU")
    library.impl("f", lambda x: x.dequantize() * 5, "QuantizedCPU")
    return ops.f(torch.ones(2)), ops.f(torch.ones(2).to_sparse()), ops.f(torch.quantize_per_tensor(torch.ones(2), 0.5, 0, torch.qint8))


@same
def test_without_tensors(torch):
    library, ops, _ = _defined(torch, "f(int n) -> Tensor", "g(int n) -> Tensor", "h(int n) -> Tensor")
    library.impl("f", lambda n: torch.full((n,), 3.0), "BackendSelect")
    library.impl("g", lambda n: torch.full((n,), 4.0), "CompositeExplicitAutograd")
    library.impl("h", lambda n: torch.full((n,), 4.0), "CPU")
    return ops.f(2), ops.g(2), words(ops.h, 2)


@same
def test_kernels_before_their_operation(torch):
    space = f"kernels{next(_number)}"
    library = torch.library.Library(space, "FRAGMENT")
    library.impl("f", lambda x: x * 2, "CPU")
    library.define("f(Tensor x) -> Tensor")
    return getattr(torch.ops, space).f(torch.ones(2))


@same
def test_refused(torch):
    library, ops, _ = _defined(torch, "f(Tensor x) -> Tensor")
    library.impl("f", lambda x: x, "CPU")
    again = [words(lambda: library.impl("f", lambda x: x + 1, "CPU", allow_override=False)).__getitem__(0)]
    return (again, error(torch.library.impl, "kernels::f", "something"), words(library.impl, "f", lambda x: x, "Nonsense"),
            ops.f.default._defined_in_python, torch.ops.aten.sin.default._defined_in_python)


@same
def test_a_class_s_rule(torch):
    """register_torch_dispatch: of a mode's class, and of a class of tensors; of an operation of one's own, and of one of torch's."""
    from importlib import import_module
    mode = import_module(f"{torch.__name__}.utils._python_dispatch").TorchDispatchMode

    class Mode(mode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    class Held(torch.Tensor):
        @staticmethod
        def __new__(cls, held):
            made = torch.Tensor._make_wrapper_subclass(cls, held.shape)
            made.held = held
            return made

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            raise RuntimeError("never")

    name = f"kernels{next(_number)}::f"

    @torch.library.custom_op(name, mutates_args=())
    def f(x: torch.Tensor) -> torch.Tensor:
        return x * 3
    seen = []

    @torch.library.register_torch_dispatch(name, Mode)
    def rule(self, func, types, args, kwargs):
        seen.append((type(self) is Mode, str(func).split(".")[1:], len(types), len(args), kwargs))
        return func(*args, **kwargs) * 10

    @f.register_torch_dispatch(Held)
    def other(cls, func, types, args, kwargs):
        seen.append((cls is Held, len(types)))
        return func(args[0].held)

    torch.library.register_torch_dispatch("aten::sin", Mode, lambda self, func, types, args, kwargs: args[0] * 0 + 5)
    x = torch.ones(2)
    with Mode():
        inside = f(x), torch.sin(x)
    return inside, f(Held(x)), torch.sin(x), seen, rule.__name__


@same
def test_kernels_set_aside(torch):
    name = f"kernels{next(_number)}::f"

    @torch.library.custom_op(name, mutates_args=())
    def f(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    f.register_kernel("cpu", lambda x: x * 3)
    found = [f(torch.ones(1))]
    with f.set_kernel_enabled("cpu", enabled=False):
        found.append(f(torch.ones(1)))
        with f.set_kernel_enabled("cpu"):
            found.append(f(torch.ones(1)))
        found.append(f(torch.ones(1)))
    return found, f(torch.ones(1)), words(lambda: f(torch.ones(2, device="meta")))[0]


@same
def test_kernels_asked_for(torch):
    """get_kernel: what runs below a kernel that is registered in its place."""
    library, ops, space = _defined(torch, "f(Tensor x) -> Tensor")
    library.impl("f", lambda x: x * 2, "CPU")
    old, cpu = torch.library.get_kernel(f"{space}::f", "CPU"), torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
    library.impl("f", lambda x: old.call_boxed(cpu, x) + 1, "CPU")
    relu = torch.library.get_kernel("aten::relu", torch._C.DispatchKey.CPU)
    return (ops.f(torch.ones(2)), relu.call_boxed(cpu, torch.tensor([-1.0, 2.0])), words(torch.library.get_kernel, "kernels::none", "CPU"),
            words(torch.library.get_kernel, f"{space}::f", "Nonsense"), type(old).__name__.lstrip("_"))


@same
def test_numbers_of_tensors(torch):
    """A tensor of one element stands for a float, int or bool, not for a Scalar."""
    kinds = ("float", "int", "bool", "Scalar", "float?")
    library, ops, space = _defined(torch, *(f"f{i}(Tensor x, {kind} a) -> Tensor" for i, kind in enumerate(kinds)))
    found = []
    for i, kind in enumerate(kinds):
        seen = []
        library.impl(f"f{i}", lambda x, a, seen=seen: seen.append((type(a).__name__, a)) or x.clone(), "CPU")
        for value in (torch.tensor(2.5), torch.tensor(3), torch.tensor([2.5]), torch.tensor([1.0, 2.0]), 3, 2.5, True):
            seen.clear()
            found.append((kind, error(getattr(ops, f"f{i}"), torch.ones(1), value), list(seen)))
    return found
