#!/usr/bin/env bash
# Installs torchlike into .venv and trains the digit reader.
set -euo pipefail
cd "$(dirname "$0")/.."
python3 -m venv .venv
.venv/bin/pip install --quiet -e '.[examples]'
.venv/bin/python -m torchlike.run examples/digits.py
