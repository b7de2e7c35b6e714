"""torch.__config__: what this build consists of."""
import os

import jax
import jaxlib
import numpy

from .version import __version__


def show() -> str:
    """The parts and their versions."""
    parts = {"torchlike": __version__, "JAX": jax.__version__, "jaxlib": jaxlib.__version__, "NumPy": numpy.__version__, "backend": jax.default_backend()}
    return "torchlike built with:\n" + "".join(f"  - {name} {version}\n" for name, version in parts.items())


def parallel_info() -> str:
    """Threads."""
    from ._public import FUNCTIONS
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
    return (f"threads : {FUNCTIONS['get_num_threads']()}\nprocessors : {os.cpu_count()}\nEnvironment variables:\n"
            + "".join(f"\t{n} : {os.environ.get(n, '[not set]')}\n" for n in names))
