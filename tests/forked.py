"""Programs of several processes, run as torchrun would run them, but forked from a process that has PyTorch imported: one import serves them all.

    forked.py MODULES PROGRAM:PROCESSES:PORT...

MODULES, joined by commas, are imported first. At each PORT a store listens; a program without one is run alone, as python would run it. What it
prints follows a line `= PROGRAM`.
"""
import importlib
import os
import re
import runpy
import signal
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LAUNCHERS = {"torch": (), "torchlike": ("-m", "torchlike.run")}


def started(*arguments, code=0, **variables):
    """The Python process with these arguments and variables of the environment, after it ended with `code`."""
    clean = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")}
    done = subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, timeout=240, check=False,
                          env={**clean, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore", "OMP_NUM_THREADS": "1", **variables})
    assert done.returncode == code, done.stderr
    return done


def printed(torch, folder, modules, programs):
    """The lines of each (program, processes) under `torch`, whose stores are in this process. Temporary files lie in a folder of its own; 0 processes: alone."""
    own = tempfile.mkdtemp(dir=folder)
    stores = [torch.distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False) if count else None for _, count in programs]
    text = started(*LAUNCHERS[torch.__name__], __file__, modules, *(f"{path}:{count}:{store.port if store else ''}" for (path, count), store in zip(programs, stores)),
                   TMPDIR=own).stdout
    text = re.sub(r"<torch(like)?\.\S+ object at \S+>", "OBJECT", re.sub(rf"{own}/\w+", "FOLDER", text))
    text = re.sub(r"\bm-[0-9a-f]{8}\.pt", "m-HASH.pt", text)  # by its contents, which the libraries write differently
    return [part.splitlines() for part in _parts(text)]


def _parts(text):
    """What each program printed."""
    return re.split("^= .*\n", text, flags=re.MULTILINE)[1:]


def texts(folder, library, code, cases):
    """What `code` prints as a program of its own, run once for each of `cases` with the library's name and the case as its arguments."""
    for number, case in enumerate(cases):
        Path(folder, f"{library}{number}.py").write_text(f"import sys\nsys.argv[1:] = {[library, case]!r}\n{code}")
    done = started(__file__, library, *(f"{Path(folder, f'{library}{number}.py')}:0:" for number in range(len(cases))))
    return dict(zip(cases, _parts(done.stdout), strict=True))


def run(program, rank, count, port):
    """This process as one rank of `program`."""
    if port:
        os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), GROUP_RANK="0", WORLD_SIZE=str(count), LOCAL_WORLD_SIZE=str(count), MASTER_ADDR="127.0.0.1",
                          MASTER_PORT=port, TORCHELASTIC_USE_AGENT_STORE="True", TORCHELASTIC_RESTART_COUNT="0", TORCHELASTIC_RUN_ID="forked")
    code = 1
    try:
        sys.argv = [program]
        sys.path[0] = str(Path(program).parent)  # as python would
        runpy.run_path(program, run_name="__main__")
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else end.code is not None
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def main(modules, *programs):
    for name in modules.split(","):
        importlib.import_module(name)
    for entry in programs:
        program, count, port = entry.rsplit(":", 2)
        print("=", program, flush=True)
        ranks = set()
        for rank in range(int(count) or 1):
            if not (pid := os.fork()):
                run(program, rank, int(count), port)
            ranks.add(pid)
        while ranks:
            pid, status = os.wait()
            ranks.discard(pid)
            if status:
                for other in ranks:
                    os.kill(other, signal.SIGKILL)
                sys.exit(f"{program} failed")


if __name__ == "__main__":
    main(*sys.argv[1:])
