#!/usr/bin/env bash
# Installs torchlike with its test dependencies into .venv and runs the tests, those of the engine, layers, errors and optimizers in both execution modes.
set -euo pipefail
cd "$(dirname "$0")/.."
python3 -m venv .venv
# The oracle as built for the CPU: PyPI's is built with CUDA, which is gigabytes more, and without a GPU says other things (some 50 tests ask).
.venv/bin/pip install --quiet --retries 0 --timeout 15 --no-deps --index-url https://download.pytorch.org/whl/cpu torch==2.13.0 ||
    echo "PyTorch's build for the CPU cannot be reached: tests that ask what it says of GPUs will fail under PyPI's build" >&2
.venv/bin/pip install --quiet -e '.[test]'
# pip compiles no editable source, and where PYTHONDONTWRITEBYTECODE is set each process of the tests would do so again
.venv/bin/python -m compileall -q torchlike pallas_kernels
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
.venv/bin/ruff check .
failed=0
# Values and formulas, of layers and optimizers too: hundreds of programs that each run once. XLA compiles them quickly, by its older emitters and without LLVM's
# optimizations (a seventh of the time); all others, and these where pytest is called by hand, are compiled as users' programs are.
quickly="--xla_backend_optimization_level=0 --xla_cpu_parallel_codegen_split_count=1"
older="--xla_cpu_use_fusion_emitters=false"  # jaxlib 0.11 has no other emitters any more, and ends where it is asked for them
if XLA_FLAGS=$older .venv/bin/python -c "import jax; jax.devices()" 2>/dev/null; then quickly="$quickly $older"; fi
tables=(tests/test_{attention_tiles,bag_sums,cases,conv_cpu,cpu_products,cumprod_gradient,extremes_compiled,gathering_cpu,halves,lanes,large_windows,nn_functional,numpy_lax,numpy_lax_programs}.py
        tests/test_{optim,prod_gradient,quantize_fx,ranks,recurrent,rematerialization,resampling,scans_compiled,scattering,selection,small_universes,stencils,ties,torchvision_operations}.py)
XLA_FLAGS=$quickly .venv/bin/python -m pytest -n 2 --dist worksteal "${tables[@]}" || failed=1
# The others a few files at a time, two processes at once: each file is imported by one only, and what tests leave behind (programs, JAX's caches), which
# makes each collection of garbage longer, goes with it. Those that collect much or ask Python for all its objects come first, before others fill theirs.
# What failed is said once more at the end: of long output a reader may get the ends only.
failures=$(mktemp)
export failures
trap 'rm -f "$failures"' EXIT
few() {
    local printed status=0
    printed=$(.venv/bin/python -m pytest -p no:xdist "$@" 2>&1) || status=$?
    printf '%s\n' "$printed"
    [ $status = 0 ] || printf '\nexit status %s of pytest %s\n%s\n' $status "$*" "$(tail -n 80 <<<"$printed")" >>"$failures"
    return $status
}
export -f few
first=(tests/test_{captured,compile,compile_guards,compile_programs,data_workers,garbage,nn_conversion}.py)
others() { printf '%s\n' tests/test_*.py tests/*/test_*.py | grep -vxF "$(printf '%s\n' "${tables[@]}" "${first[@]}")"; }
{ printf '%s\n' "${first[@]}"; others; } | xargs -P 2 -n 10 bash -c 'few "$@"' _ || failed=1
# once more with every operation run at once (the case table above compares both modes row by row already)
printf '%s\n' tests/test_{aliasing,autograd*,dtypes,errors*,func*,nn_*,optim,over*,parts,printing,program,serialization,tensor_types}.py |
    TORCHLIKE_IMMEDIATE=1 xargs -P 2 -n 5 bash -c 'few "$@"' _ || failed=1
cat "$failures"
exit $failed
