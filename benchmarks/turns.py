"""The libraries in processes of their own, one of which works while the others wait."""
from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

LIBRARIES = ("torch", "torchlike")


def least(script: Path, turns: int) -> dict[str, dict[str, list[float]]]:
    """Of each library what `script --serve LIBRARY` measures: for each line that it reads it writes one of JSON, lists of numbers by name. The least of each."""
    running = {name: subprocess.Popen([sys.executable, str(script), "--serve", name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for name in LIBRARIES}
    best: dict[str, dict[str, list[float]]] = {name: {} for name in LIBRARIES}
    for _ in range(turns):
        for name, process in running.items():
            process.stdin.write("go\n")
            process.stdin.flush()
            for what, numbers in json.loads(process.stdout.readline()).items():
                best[name][what] = [min(pair) for pair in zip(best[name].get(what, numbers), numbers)]
    for process in running.values():
        process.stdin.close()
        process.wait()
    return best
