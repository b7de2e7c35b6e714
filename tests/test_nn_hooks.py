"""Hooks of modules: forward, backward, global, around errors."""
from __future__ import annotations

import warnings
from collections import OrderedDict

from nn_models import net, said
from same import same


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
    left = [len(hooks) for hooks in (m._forward_hooks, m._forward_hooks_with_kwargs, m._forward_pre_hooks)]
    return plain, hooked, zero, m(x), seen, left


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


@same
def test_dictionaries_of_global_hooks_are_those_of_the_module_file(torch):
    module, seen = torch.nn.modules.module, []
    handles = [module.register_module_forward_hook(lambda *a: seen.append("lost"), always_call=True), module.register_module_backward_hook(lambda *a: seen.append("also lost"))]
    counts = [len(getattr(module, "_global_" + name)) for name in ("forward_hooks", "forward_hooks_always_called", "backward_hooks")], bool(module._has_any_global_hook())
    kept = module._global_forward_hooks, module._global_backward_hooks
    module._global_forward_hooks, module._global_backward_hooks = OrderedDict(), OrderedDict()
    x = torch.ones(2, requires_grad=True)
    torch.nn.ReLU()(x).sum().backward()
    with module.register_module_forward_hook(lambda m, args, out: out + 1):
        y = torch.nn.ReLU()(x)
    module._global_forward_hooks, module._global_backward_hooks = kept
    for handle in handles:
        handle.remove()
    module._global_is_full_backward_hook = None
    return counts, seen, y, torch.nn.ReLU()(x)


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


@same
def test_full_backward_hooks_without_input_gradients_warn(torch):
    m = torch.nn.Linear(2, 2)
    m.register_full_backward_hook(lambda mod, gi, go: None)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        m(torch.ones(1, 2)).sum().backward()
        m(torch.ones(1, 2, requires_grad=True)).sum().backward()
    return [(str(w.message), w.category, w.filename) for w in seen]


@same
def test_places_between_layers_share_memory_under_hooks(torch):
    m, seen = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU(), torch.nn.Tanh()), []
    for layer in m:
        layer.register_forward_hook(lambda mod, args, out: seen.append((args[0].data_ptr(), out.data_ptr())))
        layer.register_full_backward_hook(lambda mod, gi, go: None)
    m(torch.ones(1, 3, requires_grad=True))
    into = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU(inplace=True))
    into[0].register_full_backward_hook(lambda mod, gi, go: None)
    return [seen[i][1] == seen[i + 1][0] for i in range(2)], said(into, torch.ones(1, 3, requires_grad=True))


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


@same
def test_hooks_for_registrations_lie_where_libraries_look_for_them(torch):
    """tensordict sets parameters itself and calls the hooks."""
    module = torch.nn.modules.module
    tables = [module._global_parameter_registration_hooks, module._global_buffer_registration_hooks, module._global_module_registration_hooks]
    handles = [module.register_module_parameter_registration_hook(print), module.register_module_buffer_registration_hook(print),
               module.register_module_module_registration_hook(print)]
    during = [list(t.values()) == [print] for t in tables]
    for h in handles:
        h.remove()
    return during, [len(t) for t in tables]
