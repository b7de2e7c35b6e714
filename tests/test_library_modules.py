"""Modules of torch that libraries import parts of: each beside real torch."""
import collections
import copy
import inspect
from importlib import import_module

import pytest
from same import caught, error, same


def part(torch, name):
    return import_module(f"{torch.__name__}.{name}")


@same
def test_tensors_sorted_by_device_and_dtype(torch):  # pytorch_optimizer
    group = part(torch, "utils._foreach_utils")._group_tensors_by_device_and_dtype
    a, b, c = torch.ones(1), torch.ones(2, dtype=torch.double), torch.ones(3)

    def show(found):
        return {str(dtype): value for (_, dtype), value in found.items()}
    return (show(group([[a, b, c], [None, c, None], []], True)), show(group([[a, b, c]])),
            *(error(group, bad) for bad in ([[None, a]], [[a, b], [c]], [[]], [])))


@same
def test_where_functions_of_many_tensors_are_worth_calling(torch):  # torchtune, torchtitan
    parts, clip = part(torch, "utils._foreach_utils"), part(torch, "nn.utils.clip_grad")
    x = torch.ones(2, requires_grad=True)
    lists = [x.detach(), None], [torch.nn.Parameter(x.detach())], [x.detach(), 3], []
    product = clip._no_grad(lambda: x * 2)()
    return ([parts._device_has_foreach_support(torch.device(kind)) for kind in ("cpu", "cuda", "meta", "mps", "xla")],
            [parts._has_foreach_support(tensors, torch.device(kind)) for tensors in lists for kind in ("cpu", "cuda", "meta")],
            product, product.requires_grad, [kind.__name__ for kind in clip._tensor_or_tensors.__args__])


@same
def test_random_states_of_devices(torch):  # sentence_transformers: where nothing lies on an accelerator
    checkpoint = part(torch, "utils.checkpoint")
    return checkpoint.get_device_states(torch.ones(1), 3, {"a": torch.ones(1)}), checkpoint.set_device_states([], [])


@same
def test_the_clipped_sigmoid(torch):  # pytorch_forecasting
    return torch.distributions.transforms._clipped_sigmoid(torch.tensor([-200.0, -1.0, 0.0, 200.0]))


class Kept(collections.UserList):
    pass


Pair = collections.namedtuple("Pair", "a b")


@same
def test_pinned_batches(torch):  # speechbrain
    pin = part(torch, "utils.data._utils.pin_memory").pin_memory

    class Own:
        def pin_memory(self):
            return "pinned"
    return [pin(x) for x in ("text", b"bytes", 3, Own(), {"a": "b"}, collections.OrderedDict(a=Own()), [Own(), 2], (Own(), 2), Pair(Own(), 2), range(2))]


@same
def test_contexts_that_decorate(torch):  # tensordict, torchrl
    base = part(torch, "utils._contextlib")._DecoratorContextManager
    seen = []

    class Marked(base):
        def __init__(self, name="n"):
            self.name = name

        def clone(self):
            return Marked(self.name)

        def __enter__(self):
            seen.append(f"+{self.name}")

        def __exit__(self, *exc):
            seen.append(f"-{self.name}")

    @Marked("f")
    def f(x):
        seen.append("f")
        return x

    @Marked("g")
    def g():
        seen.append((yield 1))
        return 2

    class Plain(base):
        pass

    class Lock:
        __enter__, __exit__ = Marked.__enter__, Marked.__exit__
        name = "lock"
    steps = g()
    first = next(steps)
    last = error(steps.send, "sent")
    decorator = part(torch, "utils._contextlib").context_decorator
    return (f(1), first, last, seen, isinstance(torch.no_grad(), base), error(Plain().__enter__), error(decorator, Marked(), f), error(decorator, Lock(), Plain),
            decorator(Lock(), f)(3), decorator(lambda: Lock(), f)(4))


@same
def test_wrapper_subclasses(torch):  # tensordict, huggingface_hub
    ask = part(torch, "utils._python_dispatch").is_traceable_wrapper_subclass

    class Wrapper(torch.Tensor):
        def __tensor_flatten__(self):
            return [], None

        @staticmethod
        def __tensor_unflatten__(inner, meta, size, stride):
            return None
    return ask(torch.ones(1)), ask(3), ask(torch.nn.Parameter(torch.ones(1))), ask(torch.ones(1).as_subclass(Wrapper))


@pytest.mark.parametrize("name", ["Value", "ScriptMethod"])
@same
def test_types_of_torchscript(torch, name):  # snntorch, torchview
    kind = getattr(part(torch, "_C"), name)
    return error(kind), kind.__name__, kind.__module__, isinstance(len, kind)


@same
def test_simple_types_of_torchscript(torch):  # open_clip, pytorch_forecasting, torchrl: in annotations
    names = ("AnyType", "BoolType", "ComplexType", "DeviceObjType", "FloatType", "IntType", "NoneType", "NumberType", "StreamObjType", "StringType", "TensorType")
    return [(str(str | kind), repr(kind.get()), kind.get() is kind.get(), error(kind), kind is getattr(torch._C, name), kind.__mro__[1].__name__)
            for name in names for kind in [getattr(torch, name)]]


@same
def test_modules_that_keep_less(torch):  # accelerate, lightning, composer
    wrapper, nn = part(torch, "distributed.algorithms._checkpoint.checkpoint_wrapper"), torch.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 3))
            self.head = nn.Linear(3, 1)

        def forward(self, x, scale=None):
            return self.head(self.body(x)) * (1 if scale is None else scale)

    def trained(model, **kwargs):
        torch.manual_seed(1)
        loss = model(torch.ones(2, 3, requires_grad=True), **kwargs).sum()
        loss.backward()
        return loss, [p.grad for p in model.parameters()], [n for n, _ in model.named_parameters()], list(model.state_dict())
    torch.manual_seed(0)
    plain = Net()
    found = [trained(plain)]
    for change in (lambda m: wrapper.apply_activation_checkpointing(m, check_fn=lambda x: isinstance(x, nn.Linear)),
                   lambda m: wrapper.apply_activation_checkpointing(m, auto_wrap_policy=part(torch, "distributed.fsdp.wrap").ModuleWrapPolicy([nn.Sequential])),
                   lambda m: wrapper.apply_activation_checkpointing(m, checkpoint_wrapper_fn=wrapper.offload_wrapper)):
        model = Net()
        change(model)
        model.load_state_dict(plain.state_dict())
        found.append((*trained(model), repr(model)))
    again = wrapper.checkpoint_wrapper(plain, checkpoint_impl=wrapper.CheckpointImpl.REENTRANT)
    plain.zero_grad()
    found.append((*trained(again, scale=torch.tensor(2.0)), again.head is plain.head, wrapper.checkpoint_wrapper(plain.body)[0] is plain.body[0]))
    return found, error(wrapper.ActivationWrapper, plain)


@same
def test_bases_of_observers(torch):  # fvcore
    quantization = part(torch, "ao.quantization")

    class Largest(quantization.ObserverBase):
        def __init__(self, dtype, start=0.0, step=1):
            super().__init__(dtype)
            self.start, self.step = start, step

        def forward(self, x):
            return x

        def calculate_qparams(self, **kwargs):
            return None

    class Rounded(quantization.FakeQuantizeBase):
        def __init__(self, step=1):
            super().__init__()
            self.step = step

        forward, calculate_qparams = Largest.forward, Largest.calculate_qparams
    rounded = Rounded.with_args(step=3)()
    rounded.disable_observer()
    rounded.disable_fake_quant()
    switched = rounded.state_dict()
    rounded.enable_observer()
    made = Largest.with_args(dtype=torch.uint8).with_args(start=2.0).with_callable_args(step=lambda: 5)
    one, other = made(), made(step=6)
    return (switched, rounded.observer_enabled, rounded.step, one.dtype == torch.uint8, one.start, one.step, other.step, one.is_dynamic, repr(one),
            error(quantization.ObserverBase, torch.uint8), error(quantization.FakeQuantizeBase), inspect.isabstract(quantization.ObserverBase),
            torch.quantization.ObserverBase is quantization.ObserverBase)


@same
def test_weak_dictionaries_of_tensors(torch):
    weak = part(torch, "utils.weak")
    d, a, b = weak.WeakTensorKeyDictionary(), torch.ones(2), torch.ones(2)
    d[a], d[b] = 1, 2
    said = [len(d), d[a], a in d, torch.ones(2) in d, 3 in d, sorted(d.values())]
    other, ref = d.copy(), weak.TensorWeakRef(b)
    said += [ref() is b, weak.WeakIdRef(b) == weak.WeakIdRef(b)]
    del b
    said += [len(d), len(other), ref(), d.get(torch.ones(1)), list(d.items())[0][0] is a, (d | {a: 7})[a], d.pop(a), d.setdefault(a, 5), d.popitem()[1]]
    return said


@same
def test_weak_dictionaries_copied_deep_and_joined(torch):
    weak = part(torch, "utils.weak")
    a, b = torch.ones(2), torch.ones(2)
    d = weak.WeakIdKeyDictionary({a: [1]})
    made, joined = copy.deepcopy(d), {b: 3} | d
    made[a].append(2)
    return (d[a], made[a], type(joined) is weak.WeakIdKeyDictionary, joined[b], joined[a], error(d.update, [(b, 4), (a,)]), b in d,
            error(d.update, [("x", 1)]))


@same
def test_modules_that_torch_has_loaded(torch):
    found = [torch.utils.checkpoint, torch.utils.weak, torch.distributions.exp_family, torch.autograd.anomaly_mode, torch.profiler.profiler,
             torch.cuda.nvtx, torch.fx.passes.infra, torch.fx.passes.utils, torch.fx.experimental.proxy_tensor]
    return [m.__name__.partition(".")[2] for m in found], error(torch.cuda.nvtx.range_push, "x"), error(torch.cuda.nvtx.mark, "x")


@same
def test_the_older_vmap(torch):  # torchmin
    older = part(torch, "_vmap_internals")
    return (older._vmap(lambda x: x.sum(), 0)(torch.ones(3, 2)), older._vmap(lambda x, y: (x * y, None), (0, None), allow_none_pass_through=True)(
        torch.ones(2), torch.tensor(3.0)), older._vmap(lambda x: x + 1, 1, 1)(torch.zeros(2, 3)), hasattr(older, "in_dims_t"), hasattr(older, "out_dims_t"))


@same
def test_classes_of_parameters_are_shown(torch):  # geoopt
    class Shaped(torch.Tensor):
        pass

    class ShapedParameter(Shaped, torch.nn.Parameter):
        pass

    class Named(torch.nn.Parameter):
        pass
    shown = [torch.ones(2).as_subclass(ShapedParameter), Named(torch.ones(2)), torch.nn.Parameter(torch.ones(2)), torch.ones(2).as_subclass(Shaped)]
    return [(repr(t), torch.Tensor.__repr__(t)) for t in shown]


@same
def test_unit_vectors_of_several_tensors(torch):  # torchmin
    make = torch.autograd.functional._construct_standard_basis_for
    whole, x = torch.autograd.functional._tuple_postprocess, torch.ones(1, requires_grad=True) * 2
    return (make((torch.ones(2), torch.ones(1, dtype=torch.float64)), (2, 1)), make((torch.ones(3),), (3,)), whole((1,), False), whole((1, 2), True),
            whole(((1,), (2,)), (True, False)), whole(((1, 2),), (False, True)), torch.autograd.functional._grad_postprocess((x, x), False))


@same
def test_a_line_search_by_itself(torch):  # torchmin
    lbfgs, x, d = part(torch, "optim.lbfgs"), torch.tensor([1.0, 2.0]), torch.tensor([-1.0, -3.0])

    def slope(x, t, d):
        y = (x + t * d).requires_grad_()
        loss = (y ** 4).sum() - y.sum()
        loss.backward()
        return float(loss), y.grad
    f, g = slope(x, 0, d)
    return (lbfgs._strong_wolfe(slope, x, 1.0, d, f, g, g.dot(d)), lbfgs._strong_wolfe(slope, x, 0.01, d, f, g, g.dot(d), max_ls=2),
            *(float(lbfgs._cubic_interpolate(0.0, 1.0, torch.tensor(-1.0), 1.0, 2.0, torch.tensor(3.0), bounds)) for bounds in (None, (0.5, 0.6))))


@same
def test_triton_is_not_there(torch):
    asked = part(torch, "utils._triton")
    return [getattr(asked, name)() for name in ("has_triton_package", "has_triton", "has_triton_tma", "has_triton_tma_device", "has_triton_experimental_host_tma",
                                                "has_triton_tensor_descriptor_host_tma", "has_triton_stable_tma_api", "has_datacenter_blackwell_tma_device")]


@same
def test_what_distributed_nn_hands_on(torch):  # lejepa
    nn, functional = part(torch, "distributed.nn"), part(torch, "distributed.nn.functional")
    return [owner.ReduceOp is torch.distributed.ReduceOp and owner.group is torch.distributed.group for owner in (nn, functional)]


@same
def test_assembly_is_refused_on_the_cpu(torch):  # torchao's mx_formats, which transformers imports
    f = part(torch, "_higher_order_ops.inline_asm_elementwise").inline_asm_elementwise
    given = {"asm_str": "add.f32 $0, $1, $2;", "constraints": "=f,f,f", "dtype": torch.float32}
    return caught(f, torch.ones(2), torch.ones(2), **given), caught(f, torch.ones(2), **given, is_pure=False), error(f, **given)


@same
def test_recompiles_without_limit(torch):  # torchao's optimizers in 8 bits
    config, utils = part(torch, "_dynamo.config"), part(torch, "_dynamo.utils")
    before = config.recompile_limit
    with utils.disable_cache_limit():
        within = config.recompile_limit, config.accumulated_recompile_limit
    return within, before == config.recompile_limit
