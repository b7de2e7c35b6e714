#!/usr/bin/env bash
# What a session with a GPU runs, from the repository's root: `bash benchmarks/gpu_session.sh check` (about 4 minutes on 16 cores), then, with
# what failed there mended, `... measure` (about 5). Everything lands in $OUT (default gpu_out), the ends of all logs on the terminal.
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
    log kernels 200 $python benchmarks/gpu.py --check --budget 190 --out "$OUT" &
    log cases 215 $python tests/device_cases.py --processes 8 --seconds 190 --out "$OUT/cases.json" &
    log programs 120 $python tests/device_programs.py &
    log training 200 $python benchmarks/training_gpu.py --models mlp cnn gpt lstm resnet --contenders torch recorded compiled --steps 10 &
    log beside 150 $python -m torchlike.run examples/digits.py &
    wait
    ends 14 training
    ends 3 beside
    ends 45 kernels programs cases
    ;;
measure)
    rm -f "$OUT/timed"
    log race 235 $python benchmarks/gpu.py --quick --budget 220 --after "$OUT/timed" --out "$OUT" &
    log training 165 $python benchmarks/training_gpu.py --models gpt2 gpt resnet50 --contenders torch recorded compiled jit --ready 115 \
        --steps 10 --turns 3 --out "$OUT/training_gpu.md"
    touch "$OUT/timed"
    wait
    ends 30 training
    ends 60 race
    ;;
*) echo "check or measure" ;;
esac
