"""Executables kept between processes: which of several a later process takes."""
import os
import subprocess
import sys

from torchlike._core import disk_cache

CODE = """
import torchlike as t
from torchlike._core import executable, executor, program

executor.LENT = 0  # the second is compiled at once
taken = []
real = executable.Executable.run
executable.Executable.run = lambda self, *args: (taken.append(len(self.donated)), real(self, *args))[1]

def step(x):
    x.mul_(2.0)
    x.sum().item()

with program.tier("compiled"):
    for n in range(2, 10):
        x = t.arange(float(n))
        x.sum().item()
        step(x)
        if KEEPING:
            y = t.arange(float(n))
            y.sum().item()
            kept = y._value
            step(y)
print(*taken)
"""


def test_what_donates_most_is_taken(tmp_path):
    """One process sees eight steps with their old array dead and with it alive, and leaves two executables for each."""
    def run(keeping):
        env = os.environ | {"TORCHLIKE_CACHE": str(tmp_path), "TORCHLIKE_IMMEDIATE": "0"}
        done = subprocess.run([sys.executable, "-c", CODE.replace("KEEPING", str(keeping))], capture_output=True, text=True, env=env)
        assert done.returncode == 0, done.stderr
        return done.stdout.split()
    first = run(True)
    assert sorted(first) == ["0"] * 24 + ["1"] * 8, first
    assert run(False) == ["0", "1"] * 8


LOOP = """
import torchlike as t
from torchlike._core import history

x = t.ones(1_000_000)
for _ in range(20):
    float((x * 1.5 + 0.5).sin().sum())
print(sum(how == "compiled now" for _, _, how in history.compilations))
"""


def test_a_script_that_is_run_often_gets_compiled(tmp_path):
    """20 sights are not worth compiling, but processes tell the next how many they have seen."""
    env = os.environ | {"TORCHLIKE_CACHE": str(tmp_path), "TORCHLIKE_IMMEDIATE": "0"}

    def compiled():
        done = subprocess.run([sys.executable, "-c", LOOP], capture_output=True, text=True, env=env)
        assert done.returncode == 0, done.stderr
        return int(done.stdout)
    runs = [compiled() for _ in range(8)]
    assert runs[0] == 0 and sum(runs) == 1, runs


def test_small_files_do_not_pile_up(tmp_path, monkeypatch):
    monkeypatch.setattr(disk_cache, "folder", lambda: str(tmp_path))
    monkeypatch.setattr(disk_cache, "MOST_BYTES", 10 * disk_cache.LEAST_BYTES)
    for k in range(30):
        (tmp_path / str(k)).write_text("7")
    disk_cache._trim()
    assert len(list(tmp_path.iterdir())) == 10
