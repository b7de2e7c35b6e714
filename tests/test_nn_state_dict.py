"""State dicts: names, order, hooks, and the words in which loading complains."""
from __future__ import annotations

from collections import OrderedDict

from nn_models import net, said
from same import same


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
            list(loose.missing_keys), list(loose.unexpected_keys), m.first.bias, tuple(loose)]


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
            m.first.weight is weight, isinstance(m.first.weight, torch.nn.Parameter), m.inner.count]


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
    n.register_load_state_dict_pre_hook(lambda mod, state, *others: state.pop("junk", seen.append(len(others))))
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
