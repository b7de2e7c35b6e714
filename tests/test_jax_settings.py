"""A program's own settings of JAX, which forbid things to its JAX code, forbid the engine nothing, and stay as they are."""
import jax
import pytest

import torchlike as torch
from torchlike import nn
from torchlike._core import program

SETTINGS = {
    "no arithmetic of two types": lambda: jax.numpy_dtype_promotion("strict"),
    "no broadcasting": lambda: jax.numpy_rank_promotion("raise"),
    "no compilation": lambda: jax.disable_jit(),
    "no moving": lambda: jax.transfer_guard("disallow"),
    "no moving, asked for either": lambda: jax.transfer_guard("disallow_explicit"),
}


def now() -> list:
    return [getattr(jax.config, f"jax_{name}") for name in ("numpy_dtype_promotion", "numpy_rank_promotion", "disable_jit", "enable_x64",
                                                            "transfer_guard_host_to_device", "transfer_guard_device_to_host")]


def train(tier: str, batch: int) -> list[float]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=torch.tensor(1e-2))
    half, x, y = nn.Conv2d(1, 2, 3, dtype=torch.bfloat16), torch.randn(batch, 1, 8, 8), torch.arange(batch) % 3
    losses = []
    with program.tier(tier):
        for _ in range(3):
            with torch.autocast("cpu"):
                loss = nn.functional.cross_entropy(model(x), y) + half(x.to(torch.bfloat16)).float().square().mean()
            loss = loss + torch.arange(3, dtype=torch.float64).sum() / 7
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


@pytest.mark.parametrize("tier", ["numpy", "compiled"])
@pytest.mark.parametrize("setting", SETTINGS)
def test_training(setting, tier):
    batch = 8 + list(SETTINGS).index(setting)  # its own, so that its programs are made under the setting
    with SETTINGS[setting]():
        before = now()
        found = train(tier, batch)
        assert now() == before
    assert found == train(tier, batch)
