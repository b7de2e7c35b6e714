"""macOS and Windows lack functions that Linux has. Nothing here has run on them: other_system.py takes those functions away."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent


def printed(system: str, folder: Path) -> list[str]:
    """What other_system.py prints on that system."""
    environment = os.environ | {"PYTHONPATH": str(HERE.parent)}
    environment.pop("OMP_NUM_THREADS", None)  # as many as there are
    done = subprocess.run([sys.executable, HERE / "other_system.py", system], cwd=folder, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def on_linux(tmp_path_factory):
    return printed("linux", tmp_path_factory.mktemp("linux"))


def test_macos(on_linux, tmp_path):
    assert printed("darwin", tmp_path) == on_linux


def test_windows(on_linux, tmp_path):
    assert printed("win32", tmp_path) == on_linux[:-1]  # without the last line, of a tensor that is sent
