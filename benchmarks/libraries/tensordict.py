"""TensorDict, tensorclass, memory maps, modules on dictionaries, vmap and grad over parameters, an ensemble"""

import tempfile

import torch
from tensordict import LazyStackedTensorDict, TensorDict, TensorDictParams, tensorclass
from tensordict.nn import (
    EnsembleModule,
    NormalParamExtractor,
    ProbabilisticTensorDictModule,
    ProbabilisticTensorDictSequential,
    TensorDictModule,
    TensorDictSequential,
)
from torch import nn
from torch.func import grad, vmap

torch.manual_seed(0)
data = TensorDict({"a": torch.arange(12.0).view(3, 4), "n": {"b": torch.ones(3, 4, 2)}}, batch_size=[3, 4])
data["c"] = data["a"] * 2
data.set_("a", torch.zeros(3, 4))
print(data, data[0], data[:, 1:3].shape, data.reshape(-1).shape, data.permute(1, 0).shape)
print(sorted(data.keys(True, True), key=str), data.apply(lambda x: x + 1)["a"].mean(), (data + 1)["c"].mean())
print(torch.stack([data, data]).shape, torch.cat([data, data], 1).shape, LazyStackedTensorDict(data[0], data[1], stack_dim=0)["c"].sum())
folder = tempfile.mkdtemp()
data.memmap_(folder)
loaded = TensorDict.load_memmap(folder)
print(type(loaded["c"]).__name__, loaded["c"].sum(), loaded.is_locked)


@tensorclass
class Point:
    x: torch.Tensor
    y: torch.Tensor
    name: str


points = Point(x=torch.randn(4, 3), y=torch.arange(4), name="four", batch_size=[4])
print(points, points[:2].x.shape, points[1].y, torch.stack([points, points]).shape)

network = TensorDictSequential(
    TensorDictModule(nn.Linear(3, 8), ["x"], ["h"]),
    TensorDictModule(nn.Tanh(), ["h"], ["h"]),
    TensorDictModule(nn.Linear(8, 1), ["h"], ["out"]),
)
batch = TensorDict({"x": torch.randn(32, 3)}, [32])
batch["y"] = batch["x"].sum(-1, keepdim=True).sin()
optimizer = torch.optim.Adam(network.parameters(), 1e-2)
for step in range(8):
    loss = (network(batch.clone())["out"] - batch["y"]).pow(2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print("step", step, "loss", f"{loss.item():.5f}")

parameters = TensorDict.from_module(network).data.clone()


def call(inputs, parameters):
    with parameters.to_module(network):
        return network(inputs)


def squared_error(parameters, x, y):
    return (call(TensorDict({"x": x}, []), parameters)["out"] - y).pow(2).mean()


several = torch.stack([parameters, parameters * 0.9, parameters * 0.8]).lock_()
few = batch.select("x")[:5]
for _ in range(3):  # a locked dictionary keeps its examples
    print("several models", vmap(call, (None, 0))(few, several)["out"].sum((1, 2)))
gradients = vmap(grad(squared_error), (None, 0, 0))(parameters, batch["x"], batch["y"])
print("per-sample gradients", gradients.batch_size, sum(v.pow(2).sum() for v in gradients.values(True, True)))
leaves = TensorDictParams(TensorDict({"w": torch.randn(3, 4), "b": {"c": nn.Parameter(torch.zeros(4))}}, []))
(leaves["w"].sum() + leaves["b", "c"].sum()).backward()
print([name for name, _ in leaves.named_parameters()], leaves["w"].grad.sum())

torch.manual_seed(1)
actor = ProbabilisticTensorDictSequential(
    TensorDictModule(nn.Sequential(nn.Linear(3, 4), NormalParamExtractor()), ["x"], ["loc", "scale"]),
    ProbabilisticTensorDictModule(["loc", "scale"], ["action"], distribution_class=torch.distributions.Normal, return_log_prob=True),
)
found = actor(few.clone())
print(sorted(found.keys()), found["action"].sum(), found["action_log_prob"].sum())
ensemble = EnsembleModule(TensorDictModule(nn.Linear(3, 2), ["x"], ["q"]), num_copies=3)
values = ensemble(few.clone())["q"]
print(values.shape, values.sum())
