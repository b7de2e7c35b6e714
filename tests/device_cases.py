"""The case table with torchlike's tensors on a GPU or TPU, beside the same on the CPU, which test_cases.py holds against real torch.

    python tests/device_cases.py [--device cuda] [--processes 12] [--seconds 150] [--rows PART ...] [--out FILE]
    python tests/device_cases.py --posing                 a second CPU device takes the GPU's place: what any machine can check

Each row's samples and their gradients are one program. Rows run in processes apart from this one, so that a crash loses one row.
"""
from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent)]
# they name a device, or read memory that only the CPU has
LEFT_ALONE = ("from_numpy", "frombuffer", "typename", "from_dlpack", "set_default_device",
              *(f"Tensor.{name}" for name in ("numpy data_ptr is_cuda get_device is_pinned pin_memory type __array__ apply_ device __repr__ __format__ to cpu").split()))


def pose() -> None:
    """Let the second CPU device be the GPU."""
    import jax

    import torchlike
    from torchlike._core import device
    cpu = jax.local_devices(backend="cpu")
    device._jax_devices = {"cpu": tuple(cpu[:1]), "cuda": tuple(cpu[1:]), "tpu": ()}.__getitem__
    local_devices, jax.local_devices = jax.local_devices, lambda *args, backend=None: list(device._jax_devices(backend)) if backend else local_devices(*args)
    live_arrays = jax.live_arrays
    for module in (torchlike.cuda, torchlike.cuda._devices):
        module.get_device_capability = lambda device=None: (9, 0)
    jax.live_arrays = lambda platform=None: live_arrays("cpu" if platform == "cuda" else platform)
    of_platform = device.of_jax_device
    device.of_jax_device = lambda jd: device.canonical("cuda:0") if jd is cpu[1] else of_platform(jd)


def compile_at_once() -> None:
    """Let programs be compiled at first sight, where JAX can trace them: small ones would run on the host."""
    from torchlike._core import executor
    executor._wants_compilation = lambda info, inputs: info.device.type != "cpu"


def serve(where: str, posing: bool) -> None:
    """For each row's id read, a line of JSON with what differs."""
    import case
    import checks
    import compare
    from cases import CASES

    import torchlike
    if posing:
        pose()
    compile_at_once()
    torchlike.backends.cudnn.allow_tf32 = False
    made, seen = case.tensor, compare.to_numpy
    place = ["cpu"]
    case.tensor = checks.tensor = lambda torch, *spec: made(torch, *spec).to(place[0], copy=True)
    elsewhere = []

    def to_numpy(x):
        if x.device.type != place[0]:
            elsewhere.append(f"device: a result of shape {tuple(x.shape)} is on {x.device}")
        return seen(x.cpu())
    compare.to_numpy = to_numpy
    rows = {row.id: row for row in CASES}
    print("ready", flush=True)
    for line in sys.stdin:
        row = rows[line.strip()]
        start = time.perf_counter()
        outcomes = []
        for place[0] in ("cpu", where):
            elsewhere.clear()
            alone = row.fn is None and all(any(True for _ in case.specs(sample)) for sample in row.samples)
            with contextlib.nullcontext() if alone else torchlike.device(place[0]):  # operations follow their inputs, factories do not
                outcomes.append(checks.outcome(torchlike, checks.whole, row))
        found = [str(d) for d in checks._compared(row, "", *outcomes, strides=True)]
        print(json.dumps({"row": row.id, "seconds": time.perf_counter() - start, "found": found + elsewhere}), flush=True)


def last_words(file) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")[-1500:]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--processes", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=150.0)
    parser.add_argument("--rows", nargs="*", default=[""], help="only rows whose name contains one of these")
    parser.add_argument("--posing", action="store_true")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--serve", action="store_true")
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments.device, arguments.posing)
        return 0
    from cases import CASES
    waiting = [row.id for row in CASES if row.samples and row.values and any(part in row.id for part in arguments.rows) and not row.name.endswith(LEFT_ALONE)]
    random.Random(0).shuffle(waiting)  # rows of one kind take turns with others
    end, results, lock = time.monotonic() + arguments.seconds, [], threading.Lock()
    environment = os.environ | {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "TORCHLIKE_CACHE": "off"}
    if arguments.posing:
        environment["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"

    def work() -> None:
        process = None
        while time.monotonic() < end:
            with lock:
                if not waiting:
                    break
                name = waiting.pop()
            if process is None:
                process = subprocess.Popen([sys.executable, str(HERE), "--serve", "--device", arguments.device, *["--posing"] * arguments.posing],
                                           stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=(said := tempfile.TemporaryFile()), text=True, env=environment)
                if process.stdout.readline() != "ready\n":
                    print("no process:", last_words(said))
                    return
            process.stdin.write(name + "\n")
            process.stdin.flush()
            watch = threading.Timer(60, process.kill)
            watch.start()
            line = process.stdout.readline()
            watch.cancel()
            if line:
                results.append(json.loads(line))
            else:
                results.append({"row": name, "seconds": 0.0, "found": [f"died: {last_words(said)}"]})
                process = None
        if process is not None:
            process.stdin.close()
            process.kill()
    threads = [threading.Thread(target=work) for _ in range(arguments.processes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if arguments.out:
        arguments.out.write_text(json.dumps(results, indent=1))
    wrong = [r for r in results if r["found"]]
    for r in wrong:
        print(f"{r['row']}: {len(r['found'])}: {r['found'][0][:300]}")
    kinds = Counter(d.split(":")[0] for r in wrong for d in r["found"])
    print(f"{len(results)} rows on {arguments.device}, {len(wrong)} differ {dict(kinds)}, {len(waiting)} not reached;"
          f" slowest {[(r['row'], round(r['seconds'], 1)) for r in sorted(results, key=lambda r: -r['seconds'])[:5]]}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
