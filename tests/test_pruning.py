"""torch.ao.pruning: masks on weights, chosen again while a model trains."""
import copy
import importlib
import pickle
import warnings

import pytest
from same import same


def pruning(torch):
    return importlib.import_module(f"{torch.__name__}.ao.pruning")


def model(torch, rows=8, columns=12):
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(columns, rows), torch.nn.ReLU(), torch.nn.Sequential(torch.nn.Linear(rows, columns), torch.nn.Linear(columns, 2)))


SETTINGS = [{}, {"sparsity_level": 0.3}, {"sparsity_level": 0.8, "sparse_block_shape": (1, 1)}, {"sparse_block_shape": (4, 1)}, {"sparse_block_shape": (2, 2)},
            {"sparse_block_shape": (1, 4), "zeros_per_block": 2}, {"sparsity_level": 1.0, "zeros_per_block": 2}, {"sparsity_level": 1.0}, {"sparsity_level": 0.0},
            {"zeros_per_block": 0}, {"norm": 1}, {"norm": lambda t: t}, {"zeros_per_block": 5}, {"zeros_per_block": -1}, {"norm": 3}]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_masks_by_the_norm_of_weights(oracle, subject, settings):
    @same
    def program(torch):
        try:
            sparsifier = pruning(torch).WeightNormSparsifier(**settings)
            net = model(torch)
            sparsifier.prepare(net, [{"tensor_fqn": "0.weight"}, {"tensor_fqn": "2.0.weight", "sparsity_level": 0.6}])
            sparsifier.step()
        except (ValueError, NotImplementedError) as error:
            return type(error).__name__, str(error)
        masks = [m.parametrizations.weight[0].mask for m in (net[0], net[2][0])]
        return masks, net(torch.ones(2, 12)), net[2][0].weight
    program(oracle, subject)


@same
def test_blocks_at_the_edge(torch):
    sparsifier, net = pruning(torch).WeightNormSparsifier(0.5, (3, 5)), model(torch)
    sparsifier.prepare(net, [{"tensor_fqn": "0.weight"}])
    sparsifier.step()
    return net[0].parametrizations.weight[0].mask


def test_zeros_in_blocks_at_the_edge(subject):
    """PyTorch fails where a matrix is no multiple of its blocks; there are as many zeros in the parts of blocks."""
    sparsifier, net = pruning(subject).WeightNormSparsifier(1.0, (1, 5), zeros_per_block=2), model(subject)
    sparsifier.prepare(net, [{"tensor_fqn": "0.weight"}])
    sparsifier.step()
    kept = net[0].parametrizations.weight[0].mask
    assert kept.shape == (8, 12) and [int(part.sum()) for part in kept.float().split(5, 1)] == [24, 24, 0]


@same
def test_training_and_the_end(torch):
    sparsifier, net = pruning(torch).WeightNormSparsifier(0.5), model(torch)
    sparsifier.prepare(net, None)
    yield repr(sparsifier).replace("torchlike", "torch"), sorted(net.state_dict()), [g["tensor_fqn"] for g in sparsifier.groups]
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    x = torch.linspace(-1, 1, 48).reshape(4, 12)
    for _ in range(3):
        sparsifier.step()
        optimizer.zero_grad()
        net(x).square().sum().backward()
        optimizer.step()
    sparsifier.enable_mask_update = False
    before = net[0].parametrizations.weight[0].mask.clone()
    sparsifier.step()
    yield torch.equal(before, net[0].parametrizations.weight[0].mask)
    state = copy.deepcopy(sparsifier.state_dict())
    yield sorted(state["state"]), [sorted(g) for g in state["groups"]], state["state"]["0.weight"]["mask"]
    other, again = model(torch), pruning(torch).WeightNormSparsifier(0.9)
    again.prepare(other, None)
    again.load_state_dict(state)
    yield other[0].weight, [g["sparsity_level"] for g in again.groups]
    sparsifier.squash_mask(("sparsity_level",), {"2.0": ("zeros_per_block",)})
    yield net[0].sparse_params, net[2][0].sparse_params, net[0].weight, isinstance(net[0].weight, torch.nn.Parameter), sorted(net.state_dict()), type(net[0]).__name__
    kept = again.__getstate__()
    yield sorted(kept), sorted(pickle.loads(pickle.dumps({k: v for k, v in kept.items() if k == "defaults"}))["defaults"])


@same
def test_near_the_diagonal(torch):
    for nearliness in (0, 1, 3, 5, 2, 31):
        sparsifier, net = pruning(torch).NearlyDiagonalSparsifier(nearliness), model(torch)
        sparsifier.prepare(net, [{"tensor_fqn": "0.weight"}])
        try:
            sparsifier.step()
            yield net[0].parametrizations.weight[0].mask
        except ValueError as error:
            yield str(error)


@same
def test_levels_by_epoch(torch):
    p = pruning(torch)
    for make in (lambda s: p.LambdaSL(s, lambda epoch: epoch / 10), lambda s: p.LambdaSL(s, [lambda epoch: 1.0, lambda epoch: 0.5**epoch]),
                 lambda s: p.CubicSL(s, 0.1, 2, 1, 5), lambda s: p.CubicSL(s, [0.0, 0.2], 2, 1, 5, True), lambda s: p.CubicSL(s, [0.1], 2)):
        sparsifier = p.WeightNormSparsifier(0.8)
        sparsifier.prepare(model(torch), [{"tensor_fqn": "0.weight"}, {"tensor_fqn": "2.0.weight"}])
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            try:
                scheduler = make(sparsifier)
            except ValueError as error:
                yield str(error)
                continue
            levels = [scheduler.get_last_sl()]
            for _ in range(9):
                scheduler.step()
                sparsifier.step()
                levels.append(scheduler.get_last_sl())
            scheduler.get_sl()
        yield levels, sorted({str(w.message) for w in seen}), sparsifier._step_count, sorted(scheduler.state_dict()), repr(scheduler).replace("torchlike", "torch")
    try:
        p.LambdaSL(model(torch), lambda epoch: 1.0)
    except Exception as error:
        yield type(error).__name__


@same
def test_other_classes_of_layers(torch):
    p = pruning(torch)

    class Dense(torch.nn.Module):
        @classmethod
        def from_dense(cls, linear):
            made = cls()
            made.register_buffer("kept", (linear.weight != 0).sum())
            return made
    sparsifier, net = p.WeightNormSparsifier(0.5), model(torch)
    sparsifier.prepare(net, [{"tensor_fqn": "2.0.weight"}])
    sparsifier.step()
    made = sparsifier.convert(net, {torch.nn.Linear: Dense})
    try:
        sparsifier.convert(net)
    except NotImplementedError as error:
        yield str(error)
    yield [type(m).__name__ for m in made.modules()], made[2][0].kept, type(net[2][0]).__name__
    for wrong in ([{"tensor_fqn": "0.weight", "module_fqn": "1"}], [{}], [net]):
        try:
            p.WeightNormSparsifier().prepare(model(torch), wrong)
        except AssertionError as error:
            yield str(error)
    yield p.module_to_fqn(net, net[2][1]), p.module_to_fqn(net, net), p.module_to_fqn(net[0], net), p.fqn_to_module(net, "2.7"), p.fqn_to_module(net, "2.1") is net[2][1]
    found = p.get_arg_info_from_tensor_fqn(net, "2.1.weight")
    yield found.pop("module") is net[2][1], found, {k: v for k, v in p.get_arg_info_from_tensor_fqn(net, "weight").items() if k != "module"}
