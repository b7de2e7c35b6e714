"""A program that logs at DEBUG sees its own records, and JAX's only where it asked for them."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
RUN = """
f = torch.compile(lambda x: torch.tanh(x * 2 + 1).sin().exp())
for _ in range(3):
    f(torch.ones(300, 300)).sum().item()
logging.debug("the end")
"""


def records(before: str, **environment: str) -> list[str]:
    """The lines that a program logs which computes and compiles, and runs `before` first."""
    program = f"import logging\nlogging.basicConfig(level=logging.DEBUG)\n{before}\nimport torchlike as torch\n{RUN}"
    env = {**os.environ, "PYTHONPATH": str(ROOT), "TORCHLIKE_CACHE": "off", **environment}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
    return [line for line in done.stderr.splitlines() if line.startswith(("DEBUG:", "INFO:"))]


def test_a_program_that_logs_at_debug_sees_its_own_records_only():
    assert records("") == ["DEBUG:root:the end"]


@pytest.mark.parametrize("before", ["import jax", "logging.getLogger('jax').setLevel(logging.DEBUG)"])
def test_who_imports_jax_or_sets_its_level_sees_what_it_compiles(before):
    assert any(line.startswith("DEBUG:jax") and "compil" in line.lower() for line in records(before))


def test_jax_own_setting_holds():
    lines = records("", JAX_LOGGING_LEVEL="DEBUG")
    assert "DEBUG:root:the end" in lines and len(lines) > 1
