"""Module: registration, hooks, state dicts, conversions, printing, copying; the words of its errors are torch's."""
from __future__ import annotations

import copy
import gc
import pickle
import warnings
from collections import OrderedDict

from same import same


def said(function, *args, **kwargs):
    """The class and the words of what a call raises."""
    try:
        return function(*args, **kwargs)
    except Exception as error:  # the error is the result
        return f"{type(error).__name__}: {error}"


def net(torch):
    """Two children of the same kind, one inside the other, with parameters and buffers."""
    nn = torch.nn

    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.tensor([2.0, 3.0]))
            self.register_parameter("shift", None)
            self.register_buffer("count", torch.tensor(3))
            self.register_buffer("scratch", torch.ones(2), persistent=False)

        def forward(self, x, gain=1.0):
            return x * self.scale * gain

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(2, 2)
            self.inner = Inner()
            self.again = self.first

        def forward(self, x, gain=1.0):
            return self.inner(self.first(x), gain=gain)

        def extra_repr(self):
            return "made for tests"

    return Net()


# ---------------------------------------------------------------------------------------------------- registration
@same
def test_names_and_order(torch):
    m = net(torch)
    return [
        [n for n, _ in m.named_parameters()], [n for n, _ in m.named_parameters(remove_duplicate=False)],
        [n for n, _ in m.named_parameters(prefix="p", recurse=False)], [n for n, _ in m.inner.named_parameters("in")],
        [n for n, _ in m.named_buffers()], [n for n, _ in m.named_modules()], [n for n, _ in m.named_children()],
        [n for n, _ in m.named_modules(remove_duplicate=False)], len(list(m.modules())), len(list(m.children())),
        [tuple(p.shape) for p in m.parameters()], [tuple(b.shape) for b in m.buffers()], list(m.state_dict()),
        list(m.state_dict(prefix="x.")), sorted(set(dir(m)) & {"first", "inner", "weight", "forward", "0"}),
        list(vars(m)), list(vars(m.first)),
    ]


@same
def test_assignment_changes_the_role_of_a_name(torch):
    nn = torch.nn
    m = nn.Module()
    seen = []

    def roles():
        seen.append([list(m._parameters), list(m._buffers), list(m._modules), sorted(m._non_persistent_buffers_set),
                     "x" in m.__dict__])

    m.x = 3
    roles()
    m.x = nn.Parameter(torch.ones(1))
    roles()
    m.x = nn.Parameter(torch.zeros(2))
    m.x = None
    roles()
    del m.x
    m.x = nn.Linear(1, 1)
    roles()
    m.x = nn.Parameter(torch.ones(1))
    roles()
    del m.x
    m.register_buffer("x", torch.ones(1), persistent=False)
    m.x = torch.zeros(3)
    roles()
    m.x = nn.Parameter(torch.ones(1))
    roles()
    del m.x
    m.x = nn.Buffer(torch.ones(2), persistent=False)
    roles()
    m.x = nn.Buffer(torch.ones(2))
    roles()
    m.x = nn.ReLU()
    roles()
    return seen


@same
def test_refused_assignments(torch):
    nn = torch.nn
    m = net(torch)

    class Unready(nn.Module):
        def __init__(self, value):
            self.x = value

    return [
        said(setattr, m, "inner", 3), said(setattr, m, "inner", torch.ones(1)), said(setattr, m.first, "weight",
                                                                                     torch.ones(1)),
        said(setattr, m.first, "weight", "text"), said(setattr, m.inner, "count", 4), said(setattr, m.inner, "count",
                                                                                           nn.ReLU),
        said(m.register_parameter, "first", None), said(m.register_parameter, "a.b", None), said(m.register_parameter,
                                                                                                 "", None),
        said(m.register_parameter, 3, None), said(m.register_parameter, "p", torch.ones(1)), said(m.register_parameter,
                                                                                                  "p", 3),
        said(m.register_buffer, "first", None), said(m.register_buffer, "a.b", None), said(m.register_buffer, "", None),
        said(m.register_buffer, 3, None), said(m.register_buffer, "b", 3.0), said(m.add_module, "a.b", None),
        said(m.add_module, "", None), said(m.add_module, 3, None), said(m.add_module, "m", 3), said(m.add_module, "m",
                                                                                                    torch.ones(1)),
        said(m.register_module, "forward", nn.ReLU()), said(getattr, m, "missing"), said(delattr, m, "missing"),
        said(lambda: Unready(3).x), said(Unready, nn.Parameter(torch.ones(1))), said(Unready, nn.Buffer(torch.ones(1))),
        said(nn.Module, 3), said(nn.Module, a=3), said(nn.Linear, 3), said(nn.Module().forward), said(nn.Module(), 3),
    ]


@same(raises="AttributeError")
def test_module_before_init(torch):
    class Unready(torch.nn.Module):
        def __init__(self):
            self.child = torch.nn.ReLU()

    Unready()


@same
def test_access_by_path(torch):
    m = net(torch)
    m.set_submodule("inner.deep", torch.nn.Linear(2, 3))
    m.set_submodule("first", torch.nn.Tanh(), strict=True)
    return [
        repr(m), m.get_submodule("") is m, repr(m.get_submodule("inner.deep")), m.get_parameter("inner.scale"),
        m.get_buffer("inner.count"), said(m.get_submodule, "inner.nothing"), said(m.get_submodule, "inner.scale"),
        said(m.get_parameter, "inner.nothing"), said(m.get_parameter, "inner.count"), said(m.get_buffer,
                                                                                           "inner.nothing"),
        said(m.get_buffer, "inner.scale"), said(m.set_submodule, "", torch.nn.ReLU()), said(m.set_submodule, "a.b",
                                                                                            torch.nn.ReLU()),
        said(m.set_submodule, "inner.scale", torch.nn.ReLU()), said(m.set_submodule, "new", torch.nn.ReLU(), True),
        said(m.set_submodule, "new", 3),
    ]


@same
def test_registration_hooks(torch):
    module = torch.nn.modules.module
    seen = []
    handles = [
        module.register_module_parameter_registration_hook(lambda m, n, p: seen.append(("parameter", n))),
        module.register_module_buffer_registration_hook(lambda m, n, b: seen.append(("buffer", n)) or b + 1),
        module.register_module_module_registration_hook(lambda m, n, c: seen.append(("module", n))),
    ]
    bn = torch.nn.Sequential(torch.nn.BatchNorm1d(2))
    for handle in handles:
        handle.remove()
    torch.nn.Linear(2, 2)
    return seen, bn[0].running_var


# --------------------------------------------------------------------------------------------------------------- hooks
@same
def test_forward_hooks(torch):
    m = net(torch)
    x = torch.ones(1, 2)
    seen = []
    plain = m(x)
    handles = [
        m.register_forward_pre_hook(lambda mod, args: seen.append("pre a")),
        m.register_forward_pre_hook(lambda mod, args: seen.append("pre b") or args[0] * 2, prepend=True),
        m.register_forward_pre_hook(lambda mod, args, kwargs: (args, {**kwargs, "gain": 3.0}), with_kwargs=True),
        m.register_forward_hook(lambda mod, args, out: seen.append(("post", len(args)))),
        m.register_forward_hook(lambda mod, args, kwargs, out: seen.append(sorted(kwargs)) or out + 1,
                                with_kwargs=True),
        m.register_forward_hook(lambda mod, args, out: seen.append("first"), prepend=True),
    ]
    hooked = m(x)
    with m.register_forward_hook(lambda mod, args, out: out * 0):
        zero = m(x)
    for handle in handles:
        handle.remove()
        handle.remove()
    return plain, hooked, zero, m(x), seen, len(m._forward_hooks), len(m._forward_hooks_with_kwargs), len(m._forward_pre_hooks)


@same
def test_hooks_around_errors(torch):
    class Fails(torch.nn.Module):
        def forward(self, x):
            raise ValueError("on purpose")

    m, seen = Fails(), []

    def failing(mod, args, out):
        raise KeyError("also in the hook")

    m.register_forward_hook(lambda mod, args, out: seen.append(("always", out)), always_call=True)
    m.register_forward_hook(lambda mod, args, out: seen.append("never"))
    m.register_forward_hook(failing, always_call=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        text = said(m, 3)
    bad = torch.nn.ReLU()
    bad.register_forward_pre_hook(lambda mod, args, kwargs: 3, with_kwargs=True)
    return text, seen, [str(w.message) for w in caught], said(bad, torch.ones(1))


@same
def test_global_forward_hooks(torch):
    module = torch.nn.modules.module
    m, seen = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Tanh()), []
    handles = [module.register_module_forward_pre_hook(lambda mod, args: seen.append("pre " + type(mod).__name__)),
               module.register_module_forward_hook(lambda mod, args, out: seen.append("post " + type(mod).__name__)),
               module.register_module_forward_hook(lambda mod, args, kwargs, out: out + 1, with_kwargs=True)]
    m[0].register_forward_hook(lambda mod, args, out: seen.append("own"))
    first = m(torch.ones(2))
    for handle in handles:
        handle.remove()
    return first, m(torch.ones(2)), seen


@same(strides=None)
def test_full_backward_hooks(torch):
    m = net(torch)
    seen = []
    m.inner.register_full_backward_hook(lambda mod, gi, go: seen.append(("inner", gi, go)))
    m.inner.register_full_backward_hook(lambda mod, gi, go: (gi[0] * 2,))
    m.inner.register_full_backward_pre_hook(lambda mod, go: seen.append(("pre", go)) or (go[0] + 1,))
    m.first.register_full_backward_hook(lambda mod, gi, go: seen.append(("first", gi, go)))
    x = torch.ones(1, 2, requires_grad=True)
    m(x).sum().backward()
    quiet = torch.ones(1, 2)
    m(quiet).sum().backward()
    return seen, x.grad, [p.grad for p in m.parameters()]


@same(strides=None)
def test_backward_hooks_see_every_input_and_output(torch):
    class Pair(torch.nn.Module):
        def forward(self, a, text, b):
            return a * b, text, b + 1

    m, seen = Pair(), []
    m.register_full_backward_hook(lambda mod, gi, go: seen.append((gi, go)))
    a, b = torch.tensor([2.0], requires_grad=True), torch.tensor([3.0])
    first, text, second = m(a, "text", b)
    (first + second).sum().backward()
    bad = torch.nn.ReLU()
    bad.register_full_backward_hook(lambda mod, gi, go: (None, None))
    leaf = torch.ones(2, requires_grad=True)
    return seen, text, a.grad, said(bad(leaf * 1).sum().backward), said(bad.register_backward_hook,
                                                                        print), type(m).__name__


@same(strides=None)
def test_global_and_old_backward_hooks(torch):
    module = torch.nn.modules.module
    m, seen = torch.nn.Linear(2, 2), []
    handle = module.register_module_full_backward_hook(lambda mod, gi, go: seen.append(("full", gi, go)))
    pre = module.register_module_full_backward_pre_hook(lambda mod, go: seen.append(("pre", go)))
    x = torch.ones(1, 2, requires_grad=True)
    m(x).sum().backward()
    handle.remove()
    pre.remove()
    old = torch.nn.ReLU()
    old.register_backward_hook(lambda mod, gi, go: seen.append(("old", gi, go)))
    old(x * 2).sum().backward()
    return seen, x.grad, said(old.register_full_backward_hook, print)


# ---------------------------------------------------------------------------------------------------------- state dicts
@same
def test_state_dict_contents(torch):
    m = net(torch)
    state = m.state_dict()
    kept = m.state_dict(keep_vars=True)
    given = OrderedDict(start=1)
    m.state_dict(destination=given, prefix="m.")
    return [state, type(state).__name__, dict(state._metadata), [v.requires_grad for v in state.values()],
            [v.requires_grad for v in kept.values()], kept["first.weight"] is m.first.weight, list(given),
            state["first.weight"].data_ptr() == m.first.weight.data_ptr(),
            torch.nn.BatchNorm1d(2).state_dict()._metadata]


@same
def test_load_state_dict_messages(torch):
    m = net(torch)
    good = m.state_dict()
    wrong = OrderedDict(good)
    wrong["first.weight"] = torch.ones(3, 2)
    wrong["surplus"] = torch.ones(1)
    wrong["inner.count"] = 7
    wrong["inner.deep.x"] = torch.ones(1)
    del wrong["inner.scale"]
    partial = {"first.bias": torch.tensor([5.0, 6.0]), "other": torch.ones(1)}
    loose = m.load_state_dict(partial, strict=False)
    return [repr(m.load_state_dict(good)), said(m.load_state_dict, wrong), said(m.load_state_dict, wrong, strict=False),
            said(m.load_state_dict, {}), said(m.load_state_dict, [1]).replace("torchlike", "torch"), repr(loose),
            list(loose.missing_keys),
            list(loose.unexpected_keys), m.first.bias, tuple(loose)]


@same
def test_load_state_dict_copies_or_assigns(torch):
    m = net(torch)
    weight = m.first.weight
    state = {k: v + 1 for k, v in m.state_dict().items()}
    m.load_state_dict(state)
    copied = m.first.weight is weight, weight.clone(), m.first.weight.requires_grad, m.inner.count.clone()
    state = {k: v.double() if v.is_floating_point() else v for k, v in state.items()}
    m.first.weight.requires_grad_(False)
    m.load_state_dict(state)
    cast = m.first.weight.dtype
    m.load_state_dict(state, assign=True)
    return [copied, cast, m.first.weight.dtype, m.first.weight.requires_grad, m.inner.scale.requires_grad,
            m.first.weight is weight,
            isinstance(m.first.weight, torch.nn.Parameter), m.inner.count]


@same
def test_state_dict_hooks(torch):
    m, seen = net(torch), []
    m.register_state_dict_pre_hook(lambda mod, prefix, keep: seen.append(("pre", prefix, keep)))

    def post(mod, state, prefix, metadata):
        state[prefix + "extra"] = 1

    m.inner.register_state_dict_post_hook(post)
    m._register_state_dict_hook(lambda mod, state, prefix, metadata: OrderedDict(only=state["inner.extra"]))
    state = m.state_dict()
    n = net(torch)
    n.register_load_state_dict_pre_hook(
        lambda mod, state, prefix, meta, strict, missing, unexpected, errors: state.pop("junk", seen.append(type(mod).__name__)))
    n.register_load_state_dict_post_hook(lambda mod, keys: keys.missing_keys.clear())
    result = n.load_state_dict({"junk": 1, **{k: v for k, v in n.state_dict().items() if "first" not in k}})
    n.register_state_dict_post_hook(lambda mod, state, prefix, metadata: 3)
    n.inner.register_load_state_dict_post_hook(lambda mod, keys: 3)
    return state, seen, repr(result), said(n.state_dict), said(n.load_state_dict, {}), said(m._register_state_dict_hook,
                                                                                            post)


@same
def test_extra_state(torch):
    class Counter(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.count = 5

        def get_extra_state(self):
            return {"count": self.count}

        def set_extra_state(self, state):
            self.count = state["count"]

    m = torch.nn.Sequential(Counter())
    state = m.state_dict()
    m[0].count = 0
    m.load_state_dict(state)
    return [state, m[0].count, said(m.load_state_dict, {}), said(torch.nn.Sequential(torch.nn.ReLU()).load_state_dict,
                                                                 state)]


@same
def test_loading_batch_norm_of_version_1(torch):
    bn = torch.nn.BatchNorm1d(2)
    state = OrderedDict((k, v) for k, v in bn.state_dict().items() if k != "num_batches_tracked")
    state["running_mean"] = torch.tensor([1.0, 2.0])
    return [repr(bn.load_state_dict(state)), bn.running_mean, bn.num_batches_tracked,
            said(torch.nn.InstanceNorm1d(2).load_state_dict, OrderedDict(running_mean=torch.ones(2),
                                                                         running_var=torch.ones(2)))]


@same
def test_consume_prefix(torch):
    state = torch.nn.DataParallel(torch.nn.Linear(2, 2)).state_dict()
    before = list(state)
    torch.nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
    return before, list(state), dict(state._metadata)


# ---------------------------------------------------------------------------------------------------------- conversions
@same
def test_conversions(torch):
    def kinds(m):
        return [(str(p.dtype), p.requires_grad) for p in m.parameters()], [str(b.dtype) for b in m.buffers()]

    m = net(torch)
    weight = m.first.weight
    m(torch.ones(1, 2)).sum().backward()
    seen = []
    for change in (lambda: m.double(), lambda: m.half(), lambda: m.bfloat16(), lambda: m.float(),
                   lambda: m.to(torch.float64),
                   lambda: m.to("cpu"), lambda: m.to(torch.device("cpu"), torch.float16), lambda: m.to(device="cpu", dtype=torch.float32),
                   lambda: m.to(torch.ones(1, dtype=torch.float64)), lambda: m.type(torch.float32), lambda: m.cpu()):
        same_module = change() is m
        seen.append((same_module, m.first.weight is weight, kinds(m), m.first.weight.grad.dtype))
    return seen, said(m.to, torch.int64), said(m.to, torch.bool)


@same
def test_meta_modules(torch):
    m = torch.nn.Linear(2, 3, device="meta")
    empty = m.to_empty(device="cpu")
    n = torch.nn.Sequential(torch.nn.Linear(2, 3, device="meta"))
    state = torch.nn.Sequential(torch.nn.Linear(2, 3)).state_dict()
    n.load_state_dict(state, assign=True)
    return [empty is m, m.weight.shape, str(m.weight.device), isinstance(m.weight, torch.nn.Parameter), n[0].weight,
            said(torch.nn.Linear(1, 1, device="meta").to, "cpu"), torch.nn.utils.skip_init(torch.nn.Linear, 2,
                                                                                           3).weight.shape]


@same
def test_modes_gradients_and_apply(torch):
    m = net(torch)
    seen = []
    m.apply(lambda mod: seen.append(type(mod).__name__))
    m.eval()
    modes = [mod.training for mod in m.modules()]
    m.inner.train()
    m(torch.ones(1, 2)).sum().backward()
    m.zero_grad(set_to_none=False)
    zeros = [p.grad for p in m.parameters()]
    m.zero_grad()
    m.requires_grad_(False)
    return [seen, modes, [mod.training for mod in m.modules()], zeros, [p.grad for p in m.parameters()],
            [p.requires_grad for p in m.parameters()], said(m.train, "yes"), m.train() is m]


# -------------------------------------------------------------------------------------------------- printing and copies
@same
def test_printing(torch):
    nn = torch.nn
    nested = nn.ModuleDict({"a": nn.ModuleList([nn.Linear(1, 1), nn.Linear(1, 1), nn.ReLU()]),
                            "b": nn.Sequential(nn.Dropout(0.1)),
                            "c": nn.ParameterList([torch.ones(2, 3), "text"]),
                            "d": nn.ParameterDict({"w": torch.ones(1), "n": 3})})
    lines = nn.Module()
    lines.extra_repr = lambda: "one\ntwo"
    lines.none = nn.ReLU()
    lines.none = None
    return [repr(net(torch)), repr(nested), str(nn.Module()), repr(lines), repr(nn.Sequential(nested, nn.ModuleList())),
            repr(nn.Parameter(torch.ones(2))), repr(nn.Parameter(torch.ones(2), requires_grad=False)),
            repr(nn.UninitializedParameter())]


@same
def test_deepcopy_and_pickle(torch):
    m = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2), torch.nn.LSTM(2, 2))
    m[0].tied = m[0].weight
    m.register_forward_hook(print)
    copied = copy.deepcopy(m)
    m._forward_hooks.clear()
    revived = pickle.loads(pickle.dumps(m))
    with torch.no_grad():
        copied[0].weight.add_(1)
    p = torch.nn.Parameter(torch.ones(2), requires_grad=False)
    p.note = "kept"
    return [copied.state_dict(), m.state_dict(), revived.state_dict(), copied[0].weight is copied[0].tied,
            revived[0].weight is revived[0].tied, len(copied._forward_hooks), type(revived[2].weight_ih_l0).__name__,
            [n for n, _ in revived.named_parameters()], copy.deepcopy(p).requires_grad,
            pickle.loads(pickle.dumps(p)).note]


@same
def test_parameters_and_buffers(torch):
    nn = torch.nn
    data = torch.ones(2)
    p = nn.Parameter(data)
    b = nn.Buffer(data)
    with torch.no_grad():
        p.add_(1)

    class Special(torch.Tensor):
        pass

    special = nn.Parameter(torch.ones(2).as_subclass(Special))
    return [data, p.is_leaf, p.requires_grad, nn.Parameter().shape, type(p + 1).__name__, type(p.data).__name__,
            type(p.detach()).__name__,
            isinstance(p, nn.Parameter), isinstance(data, nn.Parameter), isinstance(b, nn.Buffer), isinstance(data, nn.Buffer),
            isinstance(p, torch.Tensor), isinstance(special, nn.Parameter), type(special).__name__,
            special.requires_grad,
            said(nn.Parameter, torch.tensor([1, 2])), said(nn.Parameter, 3), nn.Parameter(torch.tensor([1]),
                                                                                          requires_grad=False),
            type(nn.Parameter(p)).__name__, p.grad_fn is None]


@same
def test_lazy_parameters(torch):
    nn = torch.nn
    m = nn.Sequential(nn.LazyLinear(3), nn.LazyBatchNorm1d())
    before = repr(m), [repr(p) for p in m.parameters()], m[0].has_uninitialized_params(),
    said(lambda: m[0].weight.shape)
    m.double()
    kind = str(m[0].weight.dtype)
    state = copy.deepcopy(m[0]).state_dict()
    used = said(lambda: m[0].weight + 1).split(" in ")[0]
    m.float()
    m(torch.ones(2, 4))
    other = nn.Sequential(nn.LazyLinear(3), nn.LazyBatchNorm1d())
    other.load_state_dict(m.state_dict())
    return [before, kind, list(state), used, repr(m), type(m[0]).__name__, m[0].weight.shape, other.state_dict(),
            type(m[0].weight).__name__,
            len(m[0]._forward_pre_hooks), repr(other), said(m.load_state_dict, nn.Sequential(nn.LazyLinear(3), nn.LazyBatchNorm1d()).state_dict())]


@same
def test_share_memory_and_hash(torch):
    m = net(torch)
    return m.share_memory() is m, len({m, m, m.first, m.again}), m == m, m.first != m.inner


@same
def test_modules_die_with_their_last_reference(torch):
    import weakref
    m = net(torch)
    m(torch.ones(1, 2)).sum().backward()
    watcher = weakref.ref(m)
    del m
    gc.collect()
    return watcher() is None


# ----------------------------------------------------------------------------------------------------------- containers
@same
def test_sequential(torch):
    nn = torch.nn
    s = nn.Sequential(OrderedDict(a=nn.ReLU(), b=nn.Linear(2, 2), c=nn.Tanh()))
    plain = nn.Sequential(nn.ReLU(), nn.Tanh())
    plain.append(nn.Sigmoid()).insert(1, nn.ELU())
    plain[0] = nn.GELU()
    seen = [repr(plain), repr(plain[1:]), repr(plain * 2), repr(plain + plain[:1]), len(plain), repr(s[1:]), repr(s.b),
            s[-1] is s.c]
    del plain[1]
    plain += nn.Sequential(nn.SiLU())
    plain *= 2
    popped = plain.pop(0)
    del s[0]
    return [*seen, repr(plain), repr(popped), repr(s), plain(torch.ones(2)), said(lambda: plain[20]),
            said(lambda: plain["a"]),
            said(lambda: plain + 3).replace("torchlike", "torch"), said(lambda: plain * 0).replace("torchlike",
                                                                                                   "torch"),
            said(lambda: plain * "a").replace("torchlike", "torch"), said(plain.insert, 99, nn.ReLU()),
            said(nn.Sequential, 3),
            said(plain.append, 3), [type(m).__name__ for m in plain.extend([nn.Mish()])], list(plain.state_dict())]


@same
def test_module_list_and_dict(torch):
    nn = torch.nn
    items = nn.ModuleList([nn.ReLU(), nn.Tanh()])
    items.append(nn.Linear(1, 1))
    items.extend([nn.ELU()]).insert(0, nn.GELU())
    items[1] = nn.SiLU()
    del items[2]
    more = items + [nn.Mish()]
    table = nn.ModuleDict([["x", nn.ReLU()], ["y", nn.Linear(1, 1)]])
    table.update({"z": nn.Tanh()})
    table["w"] = nn.ELU()
    popped = table.pop("x")
    del table["z"]
    return [repr(items), repr(more), repr(items[1:3]), len(items), repr(items.pop(-1)), "x" in table, "y" in table,
            list(table), list(table.keys()),
            [k for k, _ in table.items()], len(table), repr(table), repr(popped), said(lambda: items[9]),
            said(items.extend, 3), said(nn.ModuleList, [3]),
            said(table.update, 3), said(table.update, [("a",)]), said(table.update, [3]), said(lambda: table["no"]),
            said(items, 3),
            said(lambda: nn.ModuleDict({"a.b": nn.ReLU()})), list(items.state_dict()), table.clear(), len(table)]


@same
def test_parameter_list_and_dict(torch):
    nn = torch.nn
    items = nn.ParameterList([torch.ones(2), nn.Parameter(torch.zeros(1)), 3])
    items.append(torch.ones(1))
    items[2] = torch.full((2,), 5.0)
    items += [torch.ones(3)]
    table = nn.ParameterDict({"a": torch.ones(1), "b": "text"})
    table["c"] = nn.Parameter(torch.zeros(2))
    merged = table | nn.ParameterDict({"d": torch.ones(2)})
    return [list(items.state_dict()), len(items), repr(items), [type(p).__name__ for p in items], repr(items[1:3]),
            said(lambda: items[9]),
            said(items.extend, torch.ones(1)), said(items), list(table), list(table.state_dict()), repr(merged),
            "a" in table, table.get("q", 4),
            [k for k, _ in table.items()], list(reversed(table)), table.setdefault("e", torch.ones(1)), table.pop("a"),
            table.popitem()[0],
            said(lambda: table["no"]), said(lambda: table[3]), repr(table.copy()), repr(table.fromkeys(["u"], torch.ones(1))), said(table, 3), len(table)]
