"""Whole training steps on a GPU: torchlike recorded eager and compiled, real torch eager and torch.compile, and hand-written jax.jit.

    python benchmarks/training_gpu.py [--models gpt2 resnet50 ...] [--contenders torch recorded ...] [--steps 20] [--out FILE]

All contenders start at once, each in a process of its own, and compile and settle while the others do; then they take turns with the
card to themselves: steps whose loss is read at the end of each (`ms`) and only at the end of all (`queued ms`). The small models are models.py's; `gpt2` is
124 million parameters in bfloat16 autocast, 8 sequences of 1,024 tokens, `resnet50` 64 images of 224x224 in float32 (TF32
convolutions, torch's default); `lstm_wide` two layers of 256, 64 sequences of 512. Memory is the framework's own count of the peak.
"""
from __future__ import annotations

import argparse
import functools
import json
import os
import select
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent)]
import models  # noqa: E402
from training import compiling  # noqa: E402

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


AUTOCAST = ("gpt2",)
BY_HAND = (*models.MODELS, "gpt2")
models.MODELS.update(gpt2=gpt2, resnet50=resnet50, lstm_wide=lstm_wide)
LARGE = ("gpt2", "resnet50")  # recorded and compiled are one there: the GPU is behind Python


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
    step = models.torch_step(torch, name, torch.compile if kind == "torch.compile" else None, DEVICE, name in AUTOCAST)
    if kind == "compiled":
        step = torch.compile(step)
    return step, lambda loss: loss.item(), lambda: torch.cuda.max_memory_allocated() / 2**20


def serve(kind: str, name: str, steps: int) -> None:
    """Train until settled, and say what that took; then for each line read time some steps. Nothing small runs on the host."""
    with compiling(kind):
        _serve(kind, name, steps)


def _serve(kind: str, name: str, steps: int) -> None:
    start = time.perf_counter()
    step, value, peak = contender(kind, name)
    built = time.perf_counter()
    losses = [value(step())]
    first = time.perf_counter() - built
    losses += [value(step()) for _ in range(SETTLED - 1)]

    def queued() -> float:
        now = time.perf_counter()
        for _ in range(steps):
            loss = step()
        value(loss)
        return (time.perf_counter() - now) / steps
    queued()  # compiles what several steps without a look at the loss become
    print(json.dumps({"first": first, "built": built - start, "peak": peak(), "losses": losses[::SETTLED - 1]}), flush=True)
    for _ in sys.stdin:
        times = []
        for _ in range(steps + 3):
            now = time.perf_counter()
            value(step())
            times.append(time.perf_counter() - now)
        print(json.dumps({"ms": 1e3 * statistics.median(times[3:]), "queued": 1e3 * queued()}), flush=True)


class Contender:
    """A process that trains one model one way."""

    def __init__(self, kind: str, name: str, steps: int, cache: str):
        self.kind, self.name, self.reason, self.turns = kind, name, "", []
        environment = os.environ | {"TORCHLIKE_CACHE": cache, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
        self.said = tempfile.TemporaryFile()
        self.process = subprocess.Popen([sys.executable, str(HERE), "--serve", kind, name, str(steps)], env=environment, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.said)
        self.start: dict = {}

    def read(self, seconds: float) -> dict | None:
        """The next line, or None (and the reason noted) where none comes in time."""
        ready, _, _ = select.select([self.process.stdout], [], [], max(seconds, 0))
        line = self.process.stdout.readline() if ready else ""
        if line:
            return json.loads(line)
        self.process.kill()
        self.said.seek(0)
        self.reason = f"not ready in time ({seconds:.0f} s were left)" if not ready else " | ".join(self.said.read().decode(errors="replace").strip().splitlines()[-3:])[-400:]
        return None

    def turn(self) -> None:
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        if found := self.read(60):
            self.turns.append(found)

    def row(self) -> str:
        if self.reason or not self.turns:
            return f"| {self.name} | {self.kind} | {self.reason} |"
        ms, queued = (statistics.median(t[k] for t in self.turns) for k in ("ms", "queued"))
        losses = ", ".join(f"{x:.5f}" for x in self.start["losses"])
        return f"| {self.name} | {self.kind} | {ms:.2f} | {queued:.2f} | {self.start['peak']:.0f} | {self.start['first']:.1f} | {losses} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="*", default=list(models.MODELS))
    parser.add_argument("--contenders", nargs="*", default=list(CONTENDERS))
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--ready", type=float, default=200, help="seconds in which all must have compiled and settled")
    parser.add_argument("--serve", nargs=3)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    if arguments.serve:
        return serve(arguments.serve[0], arguments.serve[1], int(arguments.serve[2]))
    with tempfile.TemporaryDirectory() as cache:
        running = [Contender(kind, name, arguments.steps, f"{cache}/{kind}") for name in arguments.models for kind in arguments.contenders
                   if (kind != "jit" or name in BY_HAND) and (kind != "compiled" or name not in LARGE)]
        end = time.monotonic() + arguments.ready
        for c in running:
            c.start = c.read(end - time.monotonic()) or {}
            print(c.name, c.kind, {k: c.start[k] for k in ("built", "first")} if c.start else c.reason, flush=True)
        lines = ["| step | contender | ms | queued ms | peak MB | first step s, all at once | losses after 1 and 12 steps |", "|---|---|---|---|---|---|---|"]
        print("\n".join(lines), flush=True)
        for name in arguments.models:  # the turns of one model follow each other closely
            of_name = [c for c in running if c.name == name]
            for _ in range(arguments.turns):
                for c in of_name:
                    if not c.reason:
                        c.turn()
            for c in of_name:
                c.process.kill()
                lines.append(c.row())
                print(lines[-1], flush=True)
    if arguments.out:
        import jax
        arguments.out.write_text(f"{__doc__}\n{jax.devices()[0].device_kind}, jax {jax.__version__}\n\n" + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
