#!/usr/bin/env bash
# Installs torchlike with its test dependencies into .venv and runs the tests, those of the engine, layers, errors and optimizers in both execution modes.
set -euo pipefail
cd "$(dirname "$0")/.."
python3 -m venv .venv
.venv/bin/pip install --quiet -e '.[test]'
# pip compiles no editable source, and where PYTHONDONTWRITEBYTECODE is set each process of the tests would do so again
.venv/bin/python -m compileall -q torchlike pallas_kernels
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
.venv/bin/ruff check .
# Some files at a time: what tests leave behind (programs, JAX's caches) makes each collection of garbage longer. Of those each process has its half,
# and takes from the other when it is done: neighbours share compilations.
files=(tests/test_*.py tests/*/test_*.py)
failed=0
for ((i = 0; i < ${#files[@]}; i += 30)); do
    .venv/bin/python -m pytest -n 2 --dist worksteal "${files[@]:i:30}" || failed=1
done
# once more with every operation run at once (the case table above compares both modes row by row already)
cd tests
TORCHLIKE_IMMEDIATE=1 ../.venv/bin/python -m pytest -n 2 --dist worksteal test_aliasing.py test_autograd*.py test_dtypes.py test_errors*.py test_func*.py test_nn_*.py \
    test_optim.py test_over*.py test_parts.py test_printing.py test_program.py test_serialization.py test_tensor_types.py || failed=1
exit $failed
