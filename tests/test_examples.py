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
    "char_gpt.py": ("--log-every", "1", "--width", "32", "--layers", "2", "--length", "24", "--generate", "30",
                    "--batch-size", "8", "--dropout", "0.1"),
    "char_lstm.py": ("--log-every", "1", "--width", "24", "--length", "16", "--generate", "20", "--batch-size", "8",
                     "--dropout", "0.1"),
}  # fmt: skip


@pytest.mark.parametrize("name", list(SMALL))
def test_losses_are_torch_s_and_those_of_a_stopped_and_resumed_run(tmp_path, name):
    def steps(count, *more, torchlike=True):
        return run(name, "--steps", str(count), *SMALL[name], *more, cwd=tmp_path, torchlike=torchlike)

    real = losses(steps(14, "--checkpoint", "real.pt", torchlike=False))
    output = steps(12, "--checkpoint", "whole.pt")
    whole = losses(output)
    assert "2.13.0+torchlike" in output and sorted(real) == list(range(1, 15))
    assert whole == pytest.approx({step: real[step] for step in range(1, 13)}, rel=1e-3)
    first = losses(steps(5))
    output = steps(12, "--resume")
    assert "at step 5" in output
    assert {**first, **losses(output)} == pytest.approx(whole, rel=1e-5)
    # The checkpoint is an ordinary one: real torch goes on from it too.
    output = steps(14, "--resume", torchlike=False)
    assert "at step 12" in output and "torchlike" not in output
    assert losses(output) == pytest.approx({step: real[step] for step in (13, 14)}, rel=1e-3)


def test_digits_losses_are_torch_s_and_it_draws_its_picture_and_reads_the_test_digits(tmp_path):
    options = ("--epochs", "3", "--log-every", "1")  # real torch reads 96.9% right after three epochs
    real = losses(run("digits.py", *options, "--steps", "12", cwd=tmp_path, torchlike=False))
    output = run("digits.py", *options, "--plot", "picture.png", cwd=tmp_path, torchlike=True)
    ours = losses(output)
    assert len(real) == 12 and {step: ours[step] for step in real} == pytest.approx(real, rel=1e-3)
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    assert float(re.search(r"test accuracy ([\d.]+)%", output)[1]) >= 95
