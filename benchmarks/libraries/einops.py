"""rearrange, reduce, repeat, einsum, pack; training its layers; an error; compile and vmap

A compiled function's grad_fn has the name of its last operation, not CompiledFunctionBackward. torch keeps a vmapped
permutation as a view; torchlike gives a contiguous tensor with the same numbers.
"""

import torch
from einops import EinopsError, asnumpy, einsum, pack, parse_shape, rearrange, reduce, repeat, unpack
from einops.layers.torch import EinMix, Rearrange, Reduce
from torch import nn


def show(name, tensor):
    order = torch.arange(tensor.numel()).reshape(tensor.shape)
    print(name, tuple(tensor.shape), "strides", tensor.stride(), f"{(tensor.double() * order).sum().item():.4f}")


torch.manual_seed(0)
x = torch.randn(2, 3, 4, 6, requires_grad=True)
show("flatten", rearrange(x, "b c h w -> b (h w) c"))
show("to batch", rearrange(x, "b c (h h2) (w w2) -> (b h2 w2) c h w", h2=2, w2=3))
show("pool", reduce(x, "b c (h 2) (w 2) -> b c h w", "max"))
show("mean", reduce(x, "b c h w -> b c", "mean"))
show("min", reduce(x, "b c h w -> b () h w", "min"))
show("product", reduce(x, "b c h w -> h", "prod"))
show("repeat", repeat(x, "b c h w -> b c (h r) w k", r=2, k=3))
show("einsum", einsum(x, x, "b c h w, b d h w -> b c d"))
packed, shapes = pack([x, x[:, :, 0]], "b c *")
show("packed", packed)
for part in unpack(packed, shapes, "b c *"):
    show("unpacked", part)
print(shapes, parse_shape(x, "b _ h w"), asnumpy(x.detach()).shape)
print(rearrange([torch.ones(2), torch.zeros(2)], "a b -> b a"), reduce(torch.tensor([[True, False]]), "a b -> a", "any"))

model = nn.Sequential(
    nn.Conv2d(3, 8, 3, padding=1),
    Reduce("b c (h 2) (w 2) -> b c h w", "max"),
    Rearrange("b c h w -> b (c h w)"),
    nn.Linear(48, 10),
    EinMix("b d -> b h e", weight_shape="d h e", bias_shape="h e", d=10, h=2, e=4),
)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
print(model)
for step in range(6):
    optimizer.zero_grad()
    loss = model(x).pow(2).mean()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.6f}")
print(f"gradient {x.grad.abs().sum().item():.4f}", list(model.state_dict()))
try:
    rearrange(x, "b c -> c b")
except EinopsError as error:
    print(error)
compiled = torch.compile(lambda t: rearrange(t, "b c h w -> b h w c").sum((1, 2)))
print("compiled", compiled(x))
show("vmap", torch.vmap(lambda t: rearrange(t, "c h w -> (h w) c"))(x))
