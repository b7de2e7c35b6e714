"""Models at the sizes that people train, a few steps of AdamW on random data: real torch eager, and torchlike's two tiers.

    OMP_NUM_THREADS=1 taskset -c 0 python benchmarks/real_sizes.py [--only NAME ...] [--out benchmarks/results/real_sizes.md]

Needs timm and transformers, neither of which may bring another torch. Each runs in a process of its own, unmodified (after `torchlike.install()`), on one
thread: seconds of processor time of the median of steps 2 to 4, and of the first, with whatever was compiled in it (empty cache).
"""
from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path[:0] = [str(HERE.parent)]
from environment import report  # noqa: E402

IMAGES = {"resnet50": 4, "convnext_tiny": 2, "efficientnet_b0": 4, "edgenext_small": 2, "mixer_b16_224": 2, "vit_small_patch16_224": 2, "swin_tiny_patch4_window7_224": 2,
          "swin_small_patch4_window7_224": 2}
TOKENS = {"bert": 128, "gpt2": 256, "t5": 128, "llama": 256}
SIDES = ("torch", "numpy", "compiled")


def step_of(name: str):
    """A function that trains one step and returns the loss."""
    import torch
    torch.set_num_threads(1)
    torch.manual_seed(0)
    if name in IMAGES:
        import timm
        model = timm.create_model(name, num_classes=10)
        x, y = torch.randn(IMAGES[name], 3, 224, 224), torch.randint(0, 10, (IMAGES[name],))

        def loss():
            return torch.nn.functional.cross_entropy(model(x), y)
    else:
        import transformers
        model = {
            "gpt2": lambda: transformers.GPT2LMHeadModel(transformers.GPT2Config()),
            "bert": lambda: transformers.BertForMaskedLM(transformers.BertConfig()),
            "t5": lambda: transformers.T5ForConditionalGeneration(transformers.T5Config(decoder_start_token_id=0)),  # the defaults are T5-small's
            "llama": lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig(
                hidden_size=512, intermediate_size=1376, num_hidden_layers=6, num_attention_heads=8, num_key_value_heads=4)),
        }[name]()
        model.train()
        x = torch.randint(0, 30000, (2, TOKENS[name]))

        def loss():
            return model(input_ids=x, labels=x).loss
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)

    def step():
        optimizer.zero_grad()
        found = loss()
        found.backward()
        optimizer.step()
        return found.item()
    return step


def child(side: str, name: str) -> None:
    context = contextlib.nullcontext()
    if side != "torch":
        import torchlike
        torchlike.install()
        from torchlike._core import program
        context = program.tier(side)
    step, seconds = step_of(name), []
    with context:
        for _ in range(4):
            start = time.process_time()
            loss = step()
            seconds.append(time.process_time() - start)
    print(json.dumps([seconds[0], statistics.median(seconds[1:]), loss]))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="*", default=[*IMAGES, *TOKENS])
    parser.add_argument("--child", nargs=2)
    parser.add_argument("--out")
    arguments = parser.parse_args()
    if arguments.child:
        return child(*arguments.child)
    lines = ["| model | batch | torch s | torchlike s: NumPy, compiled | torchlike / torch: NumPy, compiled | first step: torch, NumPy, compiled s |"
             " loss of step 4: torch, torchlike |", "|---|---|---|---|---|---|---|"]
    for name in arguments.only:
        found = {}
        for side in SIDES:
            out = subprocess.run([sys.executable, "-W", "ignore", str(HERE), "--child", side, name], capture_output=True, text=True,
                                 env=os.environ | {"TORCHLIKE_CACHE": "off", "HF_HUB_OFFLINE": "1"})
            if out.returncode:
                raise SystemExit(out.stderr)
            found[side] = json.loads(out.stdout.splitlines()[-1])
        first, later, losses = zip(*(found[side] for side in SIDES))
        batch = f"{IMAGES[name]} images" if name in IMAGES else f"2 x {TOKENS[name]} tokens"
        lines.append(f"| {name} | {batch} | {later[0]:.2f} | {later[1]:.2f}, {later[2]:.2f} | {later[1] / later[0]:.2f}, {later[2] / later[0]:.2f} | "
                     f"{', '.join(f'{x:.1f}' for x in first)} | {losses[0]:.4f}, {losses[2]:.4f} |")
        print(lines[-1], flush=True)
    report(__doc__, lines, arguments.out)


if __name__ == "__main__":
    main()
