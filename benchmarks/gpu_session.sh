#!/usr/bin/env bash
# What a session with a GPU runs, from the repository's root, $OUT naming a folder for all logs (default gpu_out):
#   bash benchmarks/gpu_session.sh check      correctness: Pallas kernels, small programs beside real torch, the case table; 2 to 3 minutes
#   bash benchmarks/gpu_session.sh training   whole training steps; 3 to 4 minutes
#   bash benchmarks/gpu_session.sh race       kernels against XLA, cuDNN and torch; 2 to 3 minutes
# One after the other: compilers at work beside each other on 16 cores took four times as long (2026-11-26). What runs at once shares the card's
# memory, so none may take it in advance.
set -uo pipefail
OUT=${OUT:-gpu_out}
mkdir -p "$OUT"
export PYTHONUNBUFFERED=1 XLA_PYTHON_CLIENT_PREALLOCATE=false PYTHONPATH=$PWD TF_CPP_MIN_LOG_LEVEL=2
python=${PYTHON:-python3}

log() { # log NAME SECONDS COMMAND...: runs it, at most so long, into $OUT/NAME.log
    local name=$1 seconds=$2 start=$SECONDS
    shift 2
    timeout -k 5 "$seconds" "$@" >"$OUT/$name.log" 2>&1
    echo "[$name: rc $?, $((SECONDS - start)) s]" >>"$OUT/$name.log"
}

ends() { # ends LINES NAME...
    local lines=$1
    shift
    for name in "$@"; do
        echo "=== $name"
        tail -n "$lines" "$OUT/$name.log" | cut -c1-420
    done
}

case $1 in
check)
    log kernels 150 $python benchmarks/gpu.py --check --budget 140 --out "$OUT" &
    log programs1 150 $python tests/device_programs.py --compiled devices errors views_and_edits training mixed_precision products &
    log programs2 150 $python tests/device_programs.py --compiled attention recurrent streams_and_memory random_numbers compiled linear_algebra data &
    log programs3 100 $python tests/device_programs.py &
    log cases 180 $python tests/device_cases.py --processes 6 --seconds 160 --out "$OUT/cases.json" &
    wait
    ends 30 kernels programs1 programs2 programs3 cases
    ;;
training)
    log training 230 $python benchmarks/training_gpu.py --models gpt2 gpt resnet50 --contenders torch recorded compiled jit --ready 170 \
        --steps 10 --turns 3 --out "$OUT/training_gpu.md"
    ends 40 training
    ;;
race)
    log race 180 $python benchmarks/gpu.py --quick --budget 165 --out "$OUT"
    ends 60 race
    ;;
*) echo "check, training or race" ;;
esac
