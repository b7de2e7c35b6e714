"""torch.__future__: conversions and loading that overwrite or swap the parameters of a module."""
from __future__ import annotations

import gc

import pytest
from nn_models import said
from same import same


def _trained(torch):
    m = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    m(torch.ones(4, 3)).pow(2).sum().backward()
    return m


def _under(torch, name, work):
    flag = getattr(torch.__future__, f"set_{name}_module_params_on_conversion")
    flag(True)
    try:
        return work(), getattr(torch.__future__, f"get_{name}_module_params_on_conversion")()
    finally:
        flag(False)


@pytest.mark.parametrize("name", ["overwrite", "swap"])
@same
def test_conversions(torch, name):
    def work():
        m = _trained(torch)
        params, grads = list(m.parameters()), [p.grad for p in m.parameters()]
        m.double()
        kept = [[a is b for a, b in zip(m.parameters(), params)], [p.grad is g for p, g in zip(m.parameters(), grads)]]
        m.to("meta")
        return kept, [(p.dtype, p.is_meta, type(p).__name__, p.requires_grad, p.grad.dtype) for p in m.parameters()], [p.dtype for p in params]

    return _under(torch, name, work), torch.__future__.get_overwrite_module_params_on_conversion(), torch.__future__.get_swap_module_params_on_conversion()


@pytest.mark.parametrize("assign", [False, True])
@same
def test_loading_swaps(torch, assign):
    def work():
        m, state = _trained(torch), {k: v.clone() + 1 for k, v in _trained(torch).double().state_dict().items()}
        params = list(m.parameters())
        m.load_state_dict(state, assign=assign)
        return [a is b for a, b in zip(m.parameters(), params)], list(m.parameters()), list(m.buffers()), said(m.load_state_dict, {"0.weight": torch.ones(2)})

    return _under(torch, "swap", work)


@same
def test_loading_swaps_no_viewed_parameter(torch):
    """The views that live are found, of whichever parameter, and none is taken for one that is gone."""
    def work():
        m, found = torch.nn.Sequential(*(torch.nn.Linear(2, 2) for _ in range(4))), []
        state = {k: v + 1 for k, v in m.state_dict().items()}
        view = m[2].weight[0]
        found.append(said(m.load_state_dict, state))
        del view
        found.append(said(m.load_state_dict, state))
        return found, [a.equal(b) for a, b in zip(m.state_dict().values(), state.values())]

    return _under(torch, "swap", work)


@same
def test_loading_leaves_no_cycles(torch):
    m = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    state = m.state_dict()

    def left():
        gc.collect()
        gc.disable()
        try:
            m.load_state_dict(state)
            return gc.collect()
        finally:
            gc.enable()
    return min(left() for _ in range(5))  # other threads (xdist's, that takes messages in) leave some at times


@same
def test_what_cannot_be_swapped(torch):
    import weakref

    def work():
        m = torch.nn.Linear(2, 2)
        ref = weakref.ref(m.weight)
        found = said(m.double), m.weight.dtype
        del ref
        return found

    return _under(torch, "swap", work)


@same
def test_module_load_of_a_class_of_tensors(torch):
    class Loud(torch.Tensor):
        seen = []

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func.__name__ == "module_load":
                cls.seen.append(kwargs)
                return torch.full_like(args[1], 7.0).as_subclass(cls)
            return super().__torch_function__(func, types, args, kwargs or {})

    def work():
        m = torch.nn.Linear(2, 2)
        m.weight = torch.nn.Parameter(torch.ones(2, 2).as_subclass(Loud))
        m.load_state_dict({"weight": torch.ones(2, 2), "bias": torch.ones(2)})
        return m.weight.detach().as_subclass(torch.Tensor), m.bias.detach(), Loud.seen

    return _under(torch, "swap", work)


@same
def test_gradients_stay_the_objects_that_they_are(torch):
    def converted(*conversions):
        m = torch.nn.Linear(3, 2)
        m(torch.ones(1, 3)).sum().backward()
        g, found = m.weight.grad, []
        for convert in conversions:
            convert(m)
            found.append((m.weight.grad is g, g.dtype, g.device.type, m.weight.grad.dtype, m.weight.grad.device.type))
        return found, g.sum() if g.device.type == "cpu" else None

    conversions = (lambda m: m.double(), lambda m: m.requires_grad_(False).half(), lambda m: m.float(), lambda m: m.to("meta"))
    kept = torch.nn.Linear(3, 2)
    kept.weight.grad = torch.ones(2, 3).requires_grad_()
    g = kept.weight.grad
    kept.double()
    return converted(*conversions), _under(torch, "overwrite", lambda: converted(*conversions)), [kept.weight.grad is g, g.requires_grad, g.is_leaf, g.dtype]
