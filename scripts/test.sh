#!/usr/bin/env bash
# Installs torchlike with its test dependencies into .venv and runs the tests in both execution modes.
set -euo pipefail
cd "$(dirname "$0")/.."
python3 -m venv .venv
.venv/bin/pip install --quiet -e '.[test]'
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
.venv/bin/ruff check .
.venv/bin/python -m pytest -n 2
# once more with every operation run at once (the case table above compares both modes row by row already)
TORCHLIKE_IMMEDIATE=1 .venv/bin/python -m pytest -n 2 tests/test_aliasing.py tests/test_autograd.py tests/test_nn_layers.py
