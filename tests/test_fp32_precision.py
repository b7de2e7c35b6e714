"""`fp32_precision` of libraries and operations, and the older settings of TF32: what each reads after random settings, beside torch."""

import subprocess
import sys

from torchlike import backends
from torchlike._core import precision

_PROGRAM = """
import random, warnings
import torch, torchlike
warnings.simplefilter("ignore")
random.seed(0)
precisions = ["backends", "backends.cuda.matmul", "backends.cudnn", "backends.cudnn.conv", "backends.cudnn.rnn",
              "backends.mkldnn", "backends.mkldnn.matmul", "backends.mkldnn.conv", "backends.mkldnn.rnn"]
tf32 = ["backends.cuda.matmul", "backends.cudnn"]

def at(library, path):
    for name in path.split("."):
        library = getattr(library, name)
    return library

def outcome(f, *args):
    try:
        return f(*args)
    except Exception as error:
        return type(error).__name__

def state(library):
    return ([outcome(getattr, at(library, p), "fp32_precision") for p in precisions], [outcome(getattr, at(library, p), "allow_tf32") for p in tf32],
            outcome(library.get_float32_matmul_precision))

mixed = 0
for k in range(1500):
    if random.random() < .7:
        statement = setattr, random.choice(precisions), "fp32_precision", random.choice(["none", "ieee", "tf32", "bf16", "fast", 3])
    elif random.random() < .5:
        statement = setattr, random.choice(tf32), "allow_tf32", random.choice([True, False, 1])
    else:
        statement = (lambda library, word: library.set_float32_matmul_precision(word)), None, random.choice(["highest", "high", "medium", "low"])
    f, path, *args = statement
    found = [(outcome(f, library if path is None else at(library, path), *args), state(library)) for library in (torch, torchlike)]
    assert found[0] == found[1], (k, path, args, *found)
    mixed += "RuntimeError" in str(found[0][1])
assert 200 < mixed < 1400
for library in (torch, torchlike):
    with library.backends.flags(fp32_precision="bf16"):
        inside = [state(library)]
    with library.backends.mkldnn.flags(fp32_precision="tf32"):
        inside.append(state(library))
    print(inside, state(library), outcome(getattr, library.backends.cudnn.conv, "allow_tf32"), outcome(setattr, library.backends.mkldnn.rnn, "other", 1))
"""


def test_settings_read_as_torch_s_do():
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    ours, theirs = done.stdout.splitlines()
    assert ours == theirs


def test_what_a_gpu_is_permitted():
    assert precision.permitted == {"conv", "rnn"}
    try:
        backends.cudnn.conv.fp32_precision = "ieee"
        assert precision.permitted == {"rnn"}
        backends.fp32_precision = "tf32"
        assert precision.permitted == {"rnn", "matmul"}
        backends.cudnn.allow_tf32, backends.fp32_precision = True, "none"
        with backends.cudnn.flags(enabled=True, allow_tf32=False):
            assert precision.permitted == set()
    finally:
        backends.cudnn.allow_tf32, backends.fp32_precision = True, "none"
    assert precision.permitted == {"conv", "rnn"}
