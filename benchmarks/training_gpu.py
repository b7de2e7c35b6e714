"""Whole training steps on a GPU: torchlike recorded eager and compiled, real torch eager and torch.compile, and hand-written jax.jit.

    python benchmarks/training_gpu.py [--models gpt2 resnet50 ...] [--contenders torch recorded ...] [--steps 20] [--out FILE]

Each contender trains in a process of its own, with the card to itself: a first step, settling steps, then steps one behind the other
whose loss is read at the end of each (`ms`) and only at the end of all (`queued ms`). The small models are models.py's; `gpt2` is
124 million parameters in bfloat16 autocast, 8 sequences of 1,024 tokens, `resnet50` 64 images of 224x224 in float32 (TF32
convolutions, torch's default); `lstm_wide` two layers of 256, 64 sequences of 512. Memory is the framework's own count of the peak.
"""
from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent)]
import models  # noqa: E402

CONTENDERS = ("torch", "torch.compile", "recorded", "compiled", "jit")
SETTLED = 12
DEVICE = os.environ.get("BENCHMARK_DEVICE", "cuda")  # "cpu" tries the script itself


def gpt2(torch):
    """models.gpt's network at GPT-2's size."""
    return models.gpt(torch, vocabulary=50304, block=1024, d=768, layers=12, heads=12, batch=8)


def lstm_wide(torch):
    return models.lstm(torch, vocabulary=10000, d=256, steps=512, batch=64)


def resnet50(torch):
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, inputs, width, stride):
            super().__init__()
            self.main = nn.Sequential(nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
                                      nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
                                      nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width))
            self.short = nn.Identity() if inputs == 4 * width else nn.Sequential(nn.Conv2d(inputs, 4 * width, 1, stride, bias=False),
                                                                                 nn.BatchNorm2d(4 * width))

        def forward(self, x):
            return torch.relu(self.main(x) + self.short(x))
    layers, inputs = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
    for k, (width, count) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
        for j in range(count):
            layers.append(Block(inputs, width, 2 if k and not j else 1))
            inputs = 4 * width
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))
    return (model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), torch.randn(64, 3, 224, 224), torch.randint(0, 1000, (64,)),
            nn.functional.cross_entropy)


MODELS = {**models.MODELS, "gpt2": gpt2, "resnet50": resnet50, "lstm_wide": lstm_wide}
AUTOCAST = ("gpt2",)


def torch_step(torch, name: str, compiler=None):
    """A function that trains one step on the GPU and returns the loss tensor; the CPU's random numbers, so that all start equal."""
    torch.manual_seed(0)
    model, optimizer, x, y, loss_of = MODELS[name](torch)
    model, x, y = model.to(DEVICE), x.to(DEVICE), y.to(DEVICE)
    if compiler is not None:
        model = compiler(model)

    def step():
        optimizer.zero_grad()
        with torch.autocast(DEVICE, torch.bfloat16) if name in AUTOCAST else contextlib.nullcontext():
            loss = loss_of(model(x), y)
        loss.backward()
        optimizer.step()
        return loss
    return step


def jax_gpt2_step():
    """By hand in JAX: float32 parameters, bfloat16 products, cuDNN's attention."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    import optax

    import torchlike
    torchlike.manual_seed(0)
    model, _, x, y, _ = gpt2(torchlike)
    params = {n: jax.device_put(p.detach().numpy()) for n, p in model.named_parameters()}
    x, y = (jax.device_put(a.numpy().astype(np.int32)) for a in (x, y))
    tx = optax.adamw(1e-3, weight_decay=1e-2)
    half = jnp.bfloat16

    def linear(p, name, x):
        out = x.astype(half) @ p[name + ".weight"].T.astype(half)
        return out + p[name + ".bias"].astype(half) if name + ".bias" in p else out

    def norm(p, name, x):
        x = x.astype(jnp.float32)
        mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(var + 1e-5) * p[name + ".weight"] + p[name + ".bias"]

    def loss_of(p):
        h = p["tokens.weight"][x] + p["positions.weight"][:x.shape[1]]
        b, t, d = h.shape
        for k in range(12):
            n = f"blocks.{k}."
            q, key, v = (a.reshape(b, t, 12, d // 12) for a in jnp.split(linear(p, n + "qkv", norm(p, n + "ln1", h)), 3, -1))
            a = jax.nn.dot_product_attention(q, key, v, is_causal=True, implementation="cudnn").reshape(b, t, d)
            h = h + linear(p, n + "out", a)
            h = h + linear(p, n + "down", jax.nn.gelu(linear(p, n + "up", norm(p, n + "ln2", h)), approximate=False))
        logits = linear(p, "head", norm(p, "ln", h)).reshape(-1, 50304).astype(jnp.float32)
        return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def update(p, s):
        loss, g = jax.value_and_grad(loss_of)(p)
        u, s = tx.update(g, s, p)
        return optax.apply_updates(p, u), s, loss
    box = [params, tx.init(params)]

    def step():
        box[0], box[1], loss = update(*box)
        return loss
    return step


def contender(kind: str, name: str):
    """(a function that trains one step, a function that reads a loss, a function that gives the peak of memory in MB)"""
    if kind == "jit":
        import jax
        peak = lambda: (jax.devices()[0].memory_stats() or {}).get("peak_bytes_in_use", 0) / 2**20  # noqa: E731
        return (jax_gpt2_step() if name == "gpt2" else models.jax_step(name)), float, peak
    import importlib
    torch = importlib.import_module("torch" if kind.startswith("torch") else "torchlike")
    step = torch_step(torch, name, torch.compile if kind == "torch.compile" else None)
    if kind == "compiled":
        step = torch.compile(step)
    return step, lambda loss: loss.item(), lambda: torch.cuda.max_memory_allocated() / 2**20


def train(kind: str, name: str, steps: int) -> None:
    start = time.perf_counter()
    step, value, peak = contender(kind, name)
    built = time.perf_counter()
    losses = [value(step())]
    first = time.perf_counter() - built
    losses += [value(step()) for _ in range(SETTLED - 1)]
    times = []
    for _ in range(steps):
        now = time.perf_counter()
        value(step())
        times.append(time.perf_counter() - now)
    for _ in range(2):  # the first compiles what several steps without a look at the loss become
        now = time.perf_counter()
        for _ in range(steps):
            loss = step()
        losses.append(value(loss))
        queued = (time.perf_counter() - now) / steps
    print(json.dumps({"ms": 1e3 * statistics.median(times), "queued": 1e3 * queued, "first": first, "built": built - start, "peak": peak(),
                      "losses": [losses[0], losses[SETTLED - 1], losses[-1]]}))


def measured(kind: str, name: str, steps: int, cache: str, seconds: float = 150) -> dict:
    environment = os.environ | {"TORCHLIKE_CACHE": cache, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    try:
        out = subprocess.run([sys.executable, str(HERE), "--train", kind, name, str(steps)], env=environment, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return {"reason": f"took over {seconds:.0f} s"}
    if out.returncode:
        return {"reason": " | ".join(out.stderr.strip().splitlines()[-3:])[-400:]}
    return json.loads(out.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="*", default=list(MODELS))
    parser.add_argument("--contenders", nargs="*", default=list(CONTENDERS))
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--train", nargs=3)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    if arguments.train:
        return train(arguments.train[0], arguments.train[1], int(arguments.train[2]))
    lines = ["| step | contender | first step s | ms | queued ms | peak MB | losses after 1, 12 and all steps |", "|---|---|---|---|---|---|---|"]
    print("\n".join(lines), flush=True)
    with tempfile.TemporaryDirectory() as cache:
        for name in arguments.models:
            for kind in arguments.contenders:
                if kind == "jit" and name not in (*models.MODELS, "gpt2"):
                    continue
                r = measured(kind, name, arguments.steps, cache)
                lines.append(f"| {name} | {kind} | {r['reason']} |" if "reason" in r else
                             f"| {name} | {kind} | {r['first']:.1f} | {r['ms']:.2f} | {r['queued']:.2f} | {r['peak']:.0f} | "
                             f"{', '.join(f'{x:.5f}' for x in r['losses'])} |")
                print(lines[-1], flush=True)
    if arguments.out:
        import jax
        arguments.out.write_text(f"{__doc__}\n{jax.devices()[0].device_kind}, jax {jax.__version__}\n\n" + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
