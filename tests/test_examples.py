"""The example programs, cut to a few steps: the same losses on real torch and on torchlike from the same seed."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
LOSS = re.compile(r"step +(\d+)  loss (\S+)")


def run(name, *arguments, cwd, torchlike):
    command = [sys.executable, *(["-m", "torchlike.run"] if torchlike else []), str(EXAMPLES / name), *arguments]
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=600,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def losses(output):
    found = {int(step): float(loss) for step, loss in LOSS.findall(output)}
    assert found, output
    return found


SMALL = {
    "digits.py": ("--steps", "12", "--log-every", "1", "--batch-size", "32"),
    "char_gpt.py": ("--steps", "12", "--log-every", "1", "--width", "32", "--layers", "2", "--length", "24",
                    "--generate", "30", "--batch-size", "8"),
    "char_lstm.py": ("--steps", "12", "--log-every", "1", "--width", "24", "--length", "16", "--generate", "20",
                     "--batch-size", "8"),
}  # fmt: skip


@pytest.mark.parametrize("name", list(SMALL))
def test_losses_equal_torch_s(tmp_path, name):
    real = run(name, *SMALL[name], cwd=tmp_path, torchlike=False)
    ours = run(name, *SMALL[name], cwd=tmp_path, torchlike=True)
    assert "2.13.0+torchlike" in ours and "torchlike" not in real
    assert losses(ours) == pytest.approx(losses(real), rel=1e-3)


@pytest.mark.parametrize("name", ["char_gpt.py", "char_lstm.py"])
def test_resuming_gives_the_run_that_was_not_stopped(tmp_path, name):
    options = [*SMALL[name], "--dropout", "0.1"]
    whole = losses(run(name, *options, "--checkpoint", "whole.pt", cwd=tmp_path, torchlike=True))
    options[1] = "5"
    first = losses(run(name, *options, cwd=tmp_path, torchlike=True))
    options[1] = "12"
    output = run(name, *options, "--resume", cwd=tmp_path, torchlike=True)
    assert "at step 5" in output
    assert {**first, **losses(output)} == pytest.approx(whole, rel=1e-5)
    # The checkpoint is an ordinary one: real torch goes on from it too.
    options[1] = "14"
    output = run(name, *options, "--resume", cwd=tmp_path, torchlike=False)
    assert "at step 12" in output and sorted(losses(output)) == [13, 14]


def test_digits_draws_its_picture_and_reads_the_test_digits(tmp_path):
    output = run("digits.py", "--epochs", "6", "--plot", "picture.png", cwd=tmp_path, torchlike=True)
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    assert float(re.search(r"test accuracy ([\d.]+)%", output)[1]) >= 95
