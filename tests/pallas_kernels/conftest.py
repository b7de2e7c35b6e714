import jax
import pytest

from pallas_kernels import _tune
from pallas_kernels.attention.tiles import Config


@pytest.fixture
def small_blocks():
    """Blocks of 16, so that small problems have several blocks and a tail."""
    config = Config(16, 16, 4, 1)
    with _tune.forced(attention_forward=config, attention_backward=config):
        yield


@pytest.fixture(autouse=True, scope="session")
def _quick_compiles():
    # Most of the time goes to compiling programs that run once.
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
