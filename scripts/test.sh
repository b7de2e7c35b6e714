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
# one cache for all processes below
TORCHLIKE_CACHE=$(mktemp -d)
trap 'rm -rf "$TORCHLIKE_CACHE"' EXIT
export TORCHLIKE_CACHE
failed=0
tests() { .venv/bin/python -m pytest -n 2 --dist worksteal "$@" || failed=1; }
# Tables of values and formulas: hundreds of programs that each run once. XLA compiles them quickly, by its older emitters and without LLVM's
# optimizations (a seventh of the time); all others, and these where pytest is called by hand, are compiled as users' programs are.
tables=(tests/test_{cases,conv_cpu,lanes,numpy_lax,numpy_lax_programs,prod_gradient,ranks,rematerialization,scans_compiled,scattering}.py)
XLA_FLAGS="--xla_cpu_use_fusion_emitters=false --xla_backend_optimization_level=0 --xla_cpu_parallel_codegen_split_count=1" tests "${tables[@]}"
# These ask Python for all objects there are, or collect garbage: in processes that have done nothing else.
walking=(tests/test_{captured,compile,compile_guards,compile_programs,data_workers,garbage,nn_conversion}.py)
tests "${walking[@]}"
# The others some files at a time: what tests leave behind (programs, JAX's caches) makes each collection longer. Of those each process has its half,
# and takes from the other when it is done: neighbours share compilations.
mapfile -t others < <(printf '%s\n' tests/test_*.py tests/*/test_*.py | grep -vxF "$(printf '%s\n' "${tables[@]}" "${walking[@]}")")
for ((i = 0; i < ${#others[@]}; i += 30)); do
    tests "${others[@]:i:30}"
done
# once more with every operation run at once (the case table above compares both modes row by row already)
cd tests
TORCHLIKE_IMMEDIATE=1 ../.venv/bin/python -m pytest -n 2 --dist worksteal test_aliasing.py test_autograd*.py test_dtypes.py test_errors*.py test_func*.py test_nn_*.py \
    test_optim.py test_over*.py test_parts.py test_printing.py test_program.py test_serialization.py test_tensor_types.py || failed=1
exit $failed
