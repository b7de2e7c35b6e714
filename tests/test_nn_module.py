"""Module: registration, paths, conversions, printing, copying; the words of its errors are torch's."""
from __future__ import annotations

import copy
import gc
import pickle

import pytest
from nn_models import net, said
from same import same

import torchlike


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
                   lambda: m.to(torch.float64), lambda: m.to("cpu"),
                   lambda: m.to(torch.device("cpu"), torch.float16), lambda: m.to(device="cpu", dtype=torch.float32),
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
                            "b": nn.Sequential(nn.Dropout(0.1)), "c": nn.ParameterList([torch.ones(2, 3), "text"]),
                            "d": nn.ParameterDict({"w": torch.ones(1), "n": 3})})
    lines = nn.Module()
    lines.extra_repr = lambda: "one\ntwo"
    lines.none = nn.ReLU()
    lines.none = None
    spaced = nn.Module()
    spaced.extra_repr = lambda: "one\n \ntwo\n"
    spaced.layer = nn.ReLU()
    return [repr(nn.Sequential(spaced)), repr(nn.ModuleList([spaced])), repr(net(torch)), repr(nested), str(nn.Module()), repr(lines), repr(nn.Sequential(nested, nn.ModuleList())),
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
            isinstance(p, nn.Parameter), isinstance(data, nn.Parameter), isinstance(b, nn.Buffer),
            isinstance(data, nn.Buffer),
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
    w, b = m[0].weight, m[1].running_mean
    asked = [w.size(), w.ndim, w.nbytes, w.get_device(), w.to("cpu") is w, w.cpu() is w, w.double() is w, type(w.float()).__name__, type(b.float()).__name__,
             b.to("cpu") is b, said(w.numel).split(" in ")[0], said(w.clone).split(" in ")[0]]
    used = [used, *(said(f, w).split(" in ")[0] for f in (nn.init.uniform_, nn.init.trunc_normal_, nn.init.kaiming_uniform_, nn.init.kaiming_normal_,
                                                              torch.broadcast_tensors))]
    m.float()
    m(torch.ones(2, 4))
    other = nn.Sequential(nn.LazyLinear(3), nn.LazyBatchNorm1d())
    other.load_state_dict(m.state_dict())
    return [before, kind, list(state), used, asked, repr(m), type(m[0]).__name__, m[0].weight.shape, other.state_dict(),
            type(m[0].weight).__name__, len(m[0]._forward_pre_hooks), repr(other),
            said(m.load_state_dict, nn.Sequential(nn.LazyLinear(3), nn.LazyBatchNorm1d()).state_dict())]


def test_uses_of_lazy_parameters_are_named():
    w = torchlike.nn.LazyLinear(3).weight
    for name, use in {"clone": w.clone, "__getitem__": lambda: w[0], "sum": w.sum, "add": lambda: torchlike.add(w, 1)}.items():
        with pytest.raises(ValueError, match=f"uninitialized parameter in {name}\\."):
            use()


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


def test_extra_repr_is_asked_once(subject, oracle):
    def asked(torch):
        log = []

        class Talker(torch.nn.Module):
            def extra_repr(self):
                log.append(len(self._modules))
                return "one\ntwo"
        outer = Talker()
        outer.inner = Talker()
        return repr(outer), log
    assert asked(subject) == asked(oracle)
