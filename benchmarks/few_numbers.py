"""Single functions of few numbers, each result looked at: microseconds of processor time a call, beside real torch.

    OMP_NUM_THREADS=1 taskset -c 0 python benchmarks/few_numbers.py [--out benchmarks/results/few_numbers.md]

Each library runs the functions in a process of its own, in turns; the least mean of all turns counts. With gradients: of the sum of the result, which is
looked at.
"""
from __future__ import annotations

import argparse
import gc
import importlib
import json
import statistics
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent)]
from environment import report  # noqa: E402
from turns import LIBRARIES, least  # noqa: E402

CALLS = 200  # of a turn

# Of a matrix (3, 4), a plane of two channels (1, 2, 4, 4), and places in the matrix's rows.
FUNCTIONS = {
    "layer_norm": lambda F, x, plane, places: F.layer_norm(x, (4,)),
    "group_norm": lambda F, x, plane, places: F.group_norm(plane, 2),
    "batch_norm": lambda F, x, plane, places: F.batch_norm(x, None, None, training=True),
    "rms_norm": lambda F, x, plane, places: F.rms_norm(x, (4,)),
    "attention": lambda F, x, plane, places: F.scaled_dot_product_attention(plane, plane, plane),
    "max_pool2d": lambda F, x, plane, places: F.max_pool2d(plane, 2),
    "avg_pool2d": lambda F, x, plane, places: F.avg_pool2d(plane, 2),
    "softmax": lambda F, x, plane, places: x.softmax(-1),
    "std": lambda F, x, plane, places: x.std(),
    "gather": lambda F, x, plane, places: x.gather(1, places),
    "scatter": lambda F, x, plane, places: x.scatter(1, places, 0.5),
    "index_add": lambda F, x, plane, places: x.index_add(0, places[:, 0], x),
    "topk": lambda F, x, plane, places: x.topk(2)[0],
    "permute": lambda F, x, plane, places: plane.permute(0, 2, 3, 1),
    "amax": lambda F, x, plane, places: x.amax(0),
    "pad": lambda F, x, plane, places: F.pad(x, (1, 1)),
    "x * row": lambda F, x, plane, places: x * x[0],
}


def serve(library: str) -> None:
    """For each line read, run every function: microseconds a call, without and with gradients."""
    torch = importlib.import_module(library)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    x, plane, places = torch.randn(3, 4), torch.randn(1, 2, 4, 4), torch.tensor([[0, 1], [2, 0], [1, 1]])
    gc.disable()  # a collection of all that was imported would hit one function or another

    def forward(function):
        function(torch.nn.functional, x, plane, places).numpy()

    def backward(function):
        leaves = x.detach().requires_grad_(), plane.detach().requires_grad_()
        found = torch.autograd.grad(function(torch.nn.functional, *leaves, places).sum(), leaves, allow_unused=True)
        next(g for g in found if g is not None).numpy()
    for _ in sys.stdin:
        found = {}
        for name, function in FUNCTIONS.items():
            for run in (forward, backward):
                for timed in (False, True):
                    start = time.process_time()
                    for _ in range(CALLS):
                        run(function)
                    if timed:
                        found.setdefault(name, []).append(1e6 * (time.process_time() - start) / CALLS)
        gc.collect()
        print(json.dumps(found), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--turns", type=int, default=8)
    parser.add_argument("--serve")
    parser.add_argument("--out")
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments.serve)
        return
    best = least(HERE, arguments.turns)
    lines = ["| function | torch us | torchlike us | ratio | with gradients: torch us | torchlike us | ratio |", "|---|---|---|---|---|---|---|"]
    ratios: list = [[], []]
    for function in FUNCTIONS:
        theirs, ours = (best[name][function] for name in LIBRARIES)
        for kept, a, b in zip(ratios, theirs, ours):
            kept.append(b / a)
        lines.append(f"| {function} | " + " | ".join(f"{a:.1f} | {b:.1f} | {b / a:.1f}" for a, b in zip(theirs, ours)) + " |")
    lines += ["", "Geometric means: " + ", with gradients ".join(f"{statistics.geometric_mean(r):.2f}" for r in ratios)]
    report(__doc__, lines, arguments.out)


if __name__ == "__main__":
    main()
