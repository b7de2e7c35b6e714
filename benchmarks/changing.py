"""Programs whose shapes or structure change from step to step, in a fresh process with an empty cache.

    python benchmarks/changing.py [--out benchmarks/results/changing.md]

Each program runs under real torch and under torchlike, each in its own process, alternating; the total time after the
import counts, compilations included. The table gives both totals, their ratio, and what was compiled.
"""
from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve()
PROGRAMS = ("generate", "lengths", "dropped")


def gpt(torch):
    nn, F = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self, d, heads):
            super().__init__()
            self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
            self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
            self.up, self.down, self.heads = nn.Linear(d, 4 * d), nn.Linear(4 * d, d), heads

        def forward(self, x):
            b, t, d = x.shape
            q, k, v = (y.view(b, t, self.heads, d // self.heads).transpose(1, 2) for y in self.qkv(self.ln1(x)).split(d, dim=2))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).contiguous().view(b, t, d))
            return x + self.down(F.gelu(self.up(self.ln2(x))))

    class GPT(nn.Module):
        def __init__(self, vocabulary=65, block=128, d=128, layers=2, heads=4):
            super().__init__()
            self.tokens, self.positions = nn.Embedding(vocabulary, d), nn.Embedding(block, d)
            self.blocks = nn.ModuleList([Block(d, heads) for _ in range(layers)])
            self.ln, self.head = nn.LayerNorm(d), nn.Linear(d, vocabulary, bias=False)

        def forward(self, i):
            x = self.tokens(i) + self.positions(torch.arange(i.shape[1]))
            for block in self.blocks:
                x = block(x)
            return self.head(self.ln(x))
    return GPT()


def generate(torch):
    """100 tokens, greedily; the input grows by one token a step."""
    torch.manual_seed(0)
    model = gpt(torch).eval()
    i = torch.zeros(1, 1, dtype=torch.long)
    with torch.no_grad():
        for _ in range(100):
            i = torch.cat([i, model(i)[:, -1].argmax(-1, keepdim=True)], 1)
    return i.tolist()[0][:20]


def lengths(torch):
    """40 training steps on sequences of random lengths 8 to 64."""
    import random
    torch.manual_seed(0)
    draw = random.Random(0)
    model = gpt(torch)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(40):
        n = draw.randint(8, 64)
        data = torch.randint(0, 65, (4, n + 1))
        logits = model(data[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, 65), data[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def dropped(torch):
    """60 training steps of eight small layers, each dropped at random, with a loop whose length depends on the data."""
    import random
    nn = torch.nn
    torch.manual_seed(0)
    draw = random.Random(0)
    layers = nn.ModuleList([nn.Linear(32, 32) for _ in range(8)])
    head = nn.Linear(32, 4)
    optimizer = torch.optim.SGD([*layers.parameters(), *head.parameters()], lr=0.05)
    losses = []
    for _ in range(60):
        x, y = torch.randn(16, 32), torch.randint(0, 4, (16,))
        for layer in layers:
            if draw.random() < 0.5:
                x = x + torch.tanh(layer(x))
        while x.abs().mean() > 0.5:
            x = x * 0.8
        loss = nn.functional.cross_entropy(head(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def child(program: str, backend: str) -> None:
    torch = importlib.import_module(backend)
    torch.randn(2).sum().item()
    start = time.perf_counter()
    result = globals()[program](torch)
    seconds = time.perf_counter() - start
    report = {"seconds": seconds, "result": result}
    if backend == "torchlike":
        from torchlike._core import history
        report["compilations"] = len(history.compilations)
        report["compile_seconds"] = sum(c[1] for c in history.compilations)
    print(json.dumps(report))


def run(program: str, backend: str) -> dict:
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"TORCHLIKE_CACHE": cache, "PYTHONPATH": str(HERE.parent.parent)}
        out = subprocess.run([sys.executable, str(HERE), "--child", program, backend], env=environment, capture_output=True, text=True)
    if out.returncode:
        raise RuntimeError(out.stderr)
    return json.loads(out.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--child", nargs=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out")
    arguments = parser.parse_args()
    if arguments.child:
        return child(*arguments.child)
    lines = ["| program | torch s | torchlike s | ratio | programs compiled | compile s | same result |", "|---|---|---|---|---|---|---|"]
    for program in PROGRAMS:
        pairs = [(run(program, "torch"), run(program, "torchlike")) for _ in range(arguments.repeats)]
        theirs, ours = (statistics.median(p[k]["seconds"] for p in pairs) for k in (0, 1))
        a, b = pairs[0]
        same = max(abs(x - y) / max(1, abs(x)) for x, y in zip(a["result"], b["result"]))
        lines.append(f"| {program} | {theirs:.3f} | {ours:.3f} | {ours / theirs:.1f} | {b['compilations']} | {b['compile_seconds']:.2f} | "
                     f"largest difference {same:.1e} |")
        print(lines[-1], flush=True)
    table = "\n".join(lines)
    print(table)
    if arguments.out:
        sys.path.insert(0, str(HERE.parent))
        from environment import describe
        Path(arguments.out).write_text(f"{globals()['__doc__']}\n{describe()}\n\n{table}\n")


if __name__ == "__main__":
    main()
