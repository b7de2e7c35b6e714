"""Runs public PyTorch programs, unmodified, under real torch and under torchlike, and compares what they print.

    python benchmarks/public_programs.py CHECKOUTS [--only NAME ...] [--write FILE]

CHECKOUTS is a folder with clones of the repositories below, each named `owner+repository`. Each program runs in a
fresh process in a copy of its own folder, on small data (see public_standins.py); those that set no seed get one
first. Numbers that measure time are left out; every other number that the program prints is compared, in order.
"""

import argparse
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import public_standins as standins  # noqa: E402
from public_drivers import driver  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?|\bnan\b|\binf\b")
# What depends on the clock: durations, rates, and the memory address or path in a repr or a warning.
CLOCK = re.compile(
    r"ms/batch +[\d.]+|time:? +[\d.]+m?s?|mfu [-\d.]+%|(?:iter_dt|step time|step took) [\d.]+ms|in [\d.]+s|0x[0-9a-f]+|work_dir: \S+"
    r"|time elapsed: [\d.]+s|time/call: [\d.]+ ms|[\d.]+ (?:sec\b|tokens/sec)|[\d.]+ ?(?:it/s|s/it)"
)


@dataclass(frozen=True)
class Program:
    name: str
    repository: str
    folder: str | None  # inside the repository; copied, and the working directory (None: there is only what `prepare` writes)
    command: tuple[str, ...]  # what follows `python` or `python -m torchlike.run`
    tolerance: float  # relative, for every number printed
    prepare: Callable[[Path], None] | None = None
    path: str | None = None  # inside the repository, added to PYTHONPATH
    environment: dict[str, str] = field(default_factory=dict)
    reaches: Callable[[str], bool] | None = None  # for chaotic numbers: is an output good?


def found_polynomial(output: str) -> bool:
    """Whether `regression` met its stop criterion and found the polynomial.

    Its step is so long that rounding decides when it stops: torch itself stops elsewhere with other vector widths.
    """
    loss, _, learned, actual = output.replace("==>", "after").split("after")
    near = zip(numbers(learned)[::2], numbers(actual)[::2], strict=True)
    return float(loss.split()[-1]) < 1e-3 and all(abs(x - y) < 0.3 for x, y in near)


PROGRAMS = (
    Program(
        "mnist",
        "pytorch+examples",
        "mnist",
        ("main.py", "--epochs", "2", "--no-accel", "--log-interval", "1", "--test-batch-size", "250", "--save-model"),
        2e-3,
        standins.torchvision,
    ),
    Program(
        "regression",
        "pytorch+examples",
        "regression",
        ("seeded.py", "main.py"),
        0.0,
        standins.seeded,
        reaches=found_polynomial,
    ),
    Program(
        "word_language_model",
        "pytorch+examples",
        "word_language_model",
        (
            "main.py",
            "--data",
            "words",
            "--emsize",
            "32",
            "--nhid",
            "32",
            "--epochs",
            "2",
            "--batch_size",
            "8",
            "--bptt",
            "12",
            "--log-interval",
            "5",
        ),
        2e-3,
        standins.words,
    ),
    Program(
        "nanoGPT",
        "karpathy+nanoGPT",
        ".",
        (
            "train.py",
            "config/train_shakespeare_char.py",
            "--device=cpu",
            "--compile=False",
            "--eval_iters=2",
            "--log_interval=1",
            "--block_size=64",
            "--batch_size=12",
            "--n_layer=4",
            "--n_head=4",
            "--n_embd=64",
            "--max_iters=30",
            "--lr_decay_iters=30",
            "--eval_interval=15",
            "--warmup_iters=5",
            "--always_save_checkpoint=True",
        ),
        2e-3,
        standins.characters,
    ),
    Program(
        "minGPT adder",
        "karpathy+minGPT",
        "projects/adder",
        ("adder.py", "--trainer.max_iters=41", "--trainer.num_workers=1"),
        2e-3,
        path=".",
    ),
    Program(
        "micrograd test",
        "karpathy+micrograd",
        ".",
        ("-m", "pytest", "-q", "-p", "no:cacheprovider", "test/test_engine.py"),
        0.0,
    ),
    Program(
        "linear_regression",
        "yunjey+pytorch-tutorial",
        "tutorials/01-basics/linear_regression",
        ("seeded.py", "main.py"),
        1e-4,
        standins.seeded,
        environment={"MPLBACKEND": "Agg"},
    ),
    Program(
        "NNLM",
        "graykode+nlp-tutorial",
        "1-1.NNLM",
        ("seeded.py", "NNLM.py"),
        1e-3,
        standins.seeded,
        environment={"PYTHONHASHSEED": "0"},
    ),
    Program(
        "timm resnet18",
        "huggingface+pytorch-image-models",
        None,
        ("train_resnet18.py",),
        2e-3,
        standins.timm_driver,
        path=".",
    ),
    Program("examples vae", "pytorch+examples", "vae", ("main.py", "--epochs", "2", "--no-accel", "--batch-size", "32", "--log-interval", "2"), 2e-3, standins.torchvision),
    Program("examples mnist_rnn", "pytorch+examples", "mnist_rnn", ("main.py", "--epochs", "2", "--log-interval", "2"), 2e-3, standins.torchvision),
    Program("examples fx", "pytorch+examples", "fx", ("subgraph_rewriter_basic_use.py",), 0.0),
    Program("makemore", "karpathy+makemore", ".", ("makemore.py", "--max-steps", "120", "--n-layer", "2", "--n-embd", "32", "-n", "0"), 2e-3, standins.vocabulary),
    Program("ng-video-lecture", "karpathy+ng-video-lecture", ".", ("limited.py", "600", "bigram.py"), 1e-3, standins.text),
    Program("llama2.c", "karpathy+llama2.c", ".", ("drive.py",), 2e-3, driver("llama2.c")),
    *(
        Program(name, "graykode+nlp-tutorial", folder, ("limited.py", steps, folder.split(".")[1] + ".py"), 1e-3, standins.limited,
                environment={"PYTHONHASHSEED": "0", "MPLBACKEND": "Agg"})
        for name, folder, steps in (("Seq2Seq with attention", "4-2.Seq2Seq(Attention)", "400"), ("Bi-LSTM with attention", "4-3.Bi-LSTM(Attention)", "1000"))
    ),
    Program(
        "WGAN-GP",
        "eriklindernoren+PyTorch-GAN",
        "implementations/wgan_gp",
        ("limited.py", "40", "wgan_gp.py", "--n_epochs", "4", "--batch_size", "32"),
        2e-3,
        standins.limited,
    ),
    Program(
        "pygcn",
        "tkipf+pygcn",
        "pygcn",
        ("train.py", "--epochs", "30", "--no-cuda"),
        2e-3,
        standins.citations,
        path=".",
        environment={"PYTHONHASHSEED": "0"},
    ),
    Program(
        "torchdiffeq",
        "rtqichen+torchdiffeq",
        "examples",
        ("limited.py", "20", "ode_demo.py", "--niters", "20", "--data_size", "200", "--test_freq", "5"),
        1e-3,
        standins.limited,
        path=".",
    ),
    Program(
        "LLMs-from-scratch MoE",
        "rasbt+LLMs-from-scratch",
        "ch04/07_moe",
        ("gpt_with_kv_moe.py", "--emb_dim", "64", "--hidden_dim", "96", "--n_heads", "4", "--n_layers", "3", "--max_new_tokens", "60", "--num_experts", "4"),
        0.0,
        standins.byte_tokens,
    ),
    Program(
        "bidirectional RNN",
        "yunjey+pytorch-tutorial",
        "tutorials/02-intermediate/bidirectional_recurrent_neural_network",
        ("limited.py", "12", "main.py"),
        2e-3,
        standins.limited,
    ),
    Program("pytorch-cifar", "kuangliu+pytorch-cifar", None, ("drive.py",), 2e-3, driver("pytorch-cifar"), path="."),
    Program("waveglow", "NVIDIA+waveglow", None, ("drive.py",), 2e-3, driver("waveglow"), path="."),
    Program("mamba.py", "alxndrTL+mamba.py", None, ("drive.py",), 2e-3, driver("mamba.py"), path="."),
    Program("efficient-kan", "Blealtan+efficient-kan", None, ("drive.py",), 2e-3, driver("efficient-kan"), path="src"),
    Program("BERT-pytorch", "codertimo+BERT-pytorch", None, ("drive.py",), 2e-3, driver("BERT"), path="."),
    Program("nanochat", "karpathy+nanochat", None, ("drive.py",), 2e-3, driver("nanochat"), path=".", environment={"NANOCHAT_DTYPE": "float32", "TORCHDYNAMO_DISABLE": "1"}),
    Program("RWKV-LM", "BlinkDL+RWKV-LM", None, ("drive.py",), 2e-3, driver("RWKV-LM"), path="RWKV-v1"),
    Program("hifi-gan", "jik876+hifi-gan", None, ("drive.py",), 2e-3, driver("hifi-gan"), path="."),
    Program("RAFT", "princeton-vl+RAFT", None, ("drive.py",), 2e-3, driver("RAFT"), path="core"),
    Program("encodec", "facebookresearch+encodec", None, ("drive.py",), 2e-3, driver("encodec"), path="."),
    Program("schedule_free", "facebookresearch+schedule_free", None, ("drive.py",), 2e-3, driver("schedule_free"), path="."),
)


@dataclass
class Outcome:
    code: int
    seconds: float
    output: str
    errors: str


def run(program: Program, checkouts: Path, torchlike: bool, limit: float = 600) -> Outcome:
    """Runs one program in a fresh copy of its folder and returns what it printed."""
    repository = checkouts / program.repository
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary) / "work"
        if program.folder is None:
            work.mkdir()
        else:
            shutil.copytree(repository / program.folder, work, ignore=shutil.ignore_patterns(".git", "*.ipynb"))
        if program.prepare is not None:
            program.prepare(work)
        paths = [str(work)] if program.prepare is not None else []
        paths += [str(repository / program.path)] if program.path is not None else []
        paths += [str(ROOT)] if torchlike else []
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(paths),
            "PYTHONWARNINGS": "ignore",
            "PYTHONDONTWRITEBYTECODE": "1",
            **program.environment,
        }
        prefix = [sys.executable, "-m", "torchlike.run"] if torchlike else [sys.executable]
        start = time.perf_counter()
        done = subprocess.run(
            [*prefix, *program.command],
            cwd=work,
            env=environment,
            capture_output=True,
            text=True,
            timeout=limit,
            stdin=subprocess.DEVNULL,
        )
        return Outcome(done.returncode, time.perf_counter() - start, done.stdout, done.stderr)


def numbers(text: str) -> list[float]:
    return [float(n) for n in NUMBER.findall(CLOCK.sub("", text))]


def words(text: str) -> str:
    return " ".join(NUMBER.sub("#", CLOCK.sub("", text)).split())


def compare(program: Program, real: Outcome, ours: Outcome) -> tuple[bool, str]:
    """Whether the two runs agree, and in words where they first differ or how far apart their numbers are."""
    if real.code != 0:
        return False, f"fails under real torch: {last_line(real)}"
    if ours.code != 0:
        return False, last_line(ours)
    if program.reaches is not None:
        reached = [program.reaches(outcome.output) for outcome in (real, ours)]
        return all(reached), f"reaches its goal: torch {reached[0]}, torchlike {reached[1]}"
    a, b = numbers(real.output), numbers(ours.output)
    if words(real.output) != words(ours.output):
        pairs = zip(real.output.splitlines(), ours.output.splitlines(), strict=False)
        first = next((f"{x!r} against {y!r}" for x, y in pairs if words(x) != words(y)), "different lengths")
        return False, f"prints other words: {first}"
    worst = max((difference(x, y) for x, y in zip(a, b, strict=True)), default=0.0)
    return worst <= program.tolerance, f"{len(a)} numbers, largest relative difference {worst:.1e}"


def difference(x: float, y: float) -> float:
    """The relative difference; numbers below 0.1 count as 0.1, since programs print few decimals of them."""
    if x == y or (math.isnan(x) and math.isnan(y)):
        return 0.0
    return abs(x - y) / max(abs(x), abs(y), 0.1)


def last_line(outcome: Outcome) -> str:
    lines = (outcome.errors.strip() or outcome.output.strip()).splitlines()
    return f"exit code {outcome.code}: {lines[-1] if lines else 'no output'}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", type=Path)
    parser.add_argument("--only", nargs="*", help="parts of the names of the programs to run")
    parser.add_argument("--real-only", action="store_true", help="run under real torch alone and print the output")
    parser.add_argument("--logs", type=Path, help="folder for the full output of every run")
    parser.add_argument("--write", type=Path, help="also write the table to this file")
    args = parser.parse_args()
    chosen = [p for p in PROGRAMS if not args.only or any(part in p.name for part in args.only)]
    checkouts = args.checkouts.resolve()
    missing = [p.repository for p in chosen if not (checkouts / p.repository).is_dir()]
    if missing:
        parser.error(f"not in {checkouts}: {', '.join(sorted(set(missing)))}")
    rows = ["| program | same | torch s | torchlike s | comparison |", "|---|---|---|---|---|"]
    print("\n".join(rows), flush=True)
    failed = False
    for program in chosen:
        real = run(program, checkouts, torchlike=False)
        ours = real if args.real_only else run(program, checkouts, torchlike=True)
        for label, outcome in {"torch": real, "torchlike": ours}.items():
            if args.logs is not None:
                args.logs.mkdir(parents=True, exist_ok=True)
                text = f"{outcome.output}\n--- stderr\n{outcome.errors}"
                (args.logs / f"{program.name.replace(' ', '_')}.{label}.txt").write_text(text)
        same, note = compare(program, real, ours)
        failed |= not same
        rows.append(
            f"| {program.name} | {'yes' if same else 'NO'} | {real.seconds:.1f} | {ours.seconds:.1f} | {note} |"
        )
        print(rows[-1], flush=True)
    if args.write is not None:
        args.write.write_text("\n".join(rows) + "\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
