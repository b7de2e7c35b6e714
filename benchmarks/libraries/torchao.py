"""Quantized models (int8, float8, int4 by groups), 8-bit optimizers, quantization-aware training, float8 training, NF4 and MX formats.

Where a rounding falls on a tie, one integer of an activation may be another, which shows in the fifth digit of a Transformer's result.
"""
import copy

import torch
import torchao.optim
import torchao.quantization as q
from torch import nn
from torchao.float8 import Float8LinearConfig, convert_to_float8_training
from torchao.quantization.qat import QATConfig
from torchao.quantization.quantize_.workflows import to_nf4


class Block(nn.Module):
    """Attention and a layer forth and back."""

    def __init__(self, d=64, heads=4):
        super().__init__()
        self.heads, self.n1, self.qkv, self.out, self.n2 = heads, nn.LayerNorm(d), nn.Linear(d, 3 * d), nn.Linear(d, d), nn.LayerNorm(d)
        self.f = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x):
        b, t, d = x.shape
        query, key, value = self.qkv(self.n1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        x = x + self.out(nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True).transpose(1, 2).reshape(b, t, d))
        return x + self.f(self.n2(x))


def trained(name, model, optimizer, loss, steps):
    losses = []
    for _ in range(steps):
        found = loss(model)
        found.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(f"{found.item():.4f}")
    print(name, *losses)


torch.manual_seed(0)
models = {"layers": (nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 32)), torch.randn(5, 64)),
          "transformer": (nn.Sequential(Block(), Block(), nn.Linear(64, 64)), torch.randn(2, 7, 64))}
groups = {"weight_dtype": torch.int4, "weight_granularity": q.PerGroup(32)}
configurations = {"int8 weights": q.Int8WeightOnlyConfig(), "int8": q.Int8DynamicActivationInt8WeightConfig(), "float8 weights": q.Float8WeightOnlyConfig(),
                  "int4 weights by groups": q.IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=q.PerGroup(32)),
                  "int8 by int4": q.Int8DynamicActivationIntxWeightConfig(**groups)}
for name, configuration in configurations.items():
    for kind, (model, x) in models.items():
        model = copy.deepcopy(model).eval()
        with torch.no_grad():
            q.quantize_(model, configuration)
            y = model(x)
        print(name, kind, type(model[-1].weight).__name__, f"{y.abs().mean().item():.3f}", [round(v, 3) for v in y.flatten()[:5].tolist()])

for name in ("AdamW8bit", "AdamW4bit", "AdamWFp8"):
    torch.manual_seed(0)
    model, x, y = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64)), torch.randn(32, 64), torch.randn(32, 64)
    trained(name, model, getattr(torchao.optim, name)(model.parameters(), lr=1e-2), lambda m, x=x, y=y: (m(x) - y).square().mean(), 6)

torch.manual_seed(0)
model, x = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 32)), torch.randn(8, 64)
base = q.Int8DynamicActivationIntxWeightConfig(**groups)
q.quantize_(model, QATConfig(base, step="prepare"))
trained("quantization-aware", model, torch.optim.SGD(model.parameters(), 0.1), lambda m: m(x).square().mean(), 4)
q.quantize_(model, QATConfig(base, step="convert"))
print(type(model[0].weight).__name__, f"{model(x).abs().sum().item():.3f}")

torch.manual_seed(0)
model, x = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 32)).bfloat16(), torch.randn(16, 64).bfloat16()
convert_to_float8_training(model, config=Float8LinearConfig(emulate=True))
trained("float8", model, torch.optim.SGD(model.parameters(), 0.1), lambda m: m(x).square().mean(), 3)

torch.manual_seed(0)
weight = torch.randn(128, 64)
packed = to_nf4(weight, 64, 64)
print(type(packed).__name__, tuple(packed.shape), f"{packed.get_original_weight().abs().sum().item():.2f}",
      f"{nn.functional.linear(torch.randn(3, 64), packed).abs().sum().item():.2f}")
