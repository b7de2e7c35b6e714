import jax
import pytest

from pallas_kernels import _tune
from pallas_kernels.attention import tiles
from pallas_kernels.grouped import gpu as grouped
from pallas_kernels.losses import gpu as losses
from pallas_kernels.norm import gpu as norm
from pallas_kernels.recurrent import gpu as recurrent

BLOCKS = {
    "attention_forward": tiles.Config(16, 16, 4, 1),
    "attention_backward": tiles.Config(16, 16, 4, 1),
    "cross_entropy": losses.Config(32, 4),
    "grouped_product": grouped.Config(16, 16, 16, 4, 1),
    "grouped_outer": grouped.Config(16, 16, 16, 4, 1),
    "norm_forward": norm.Config(4, 4, 2),
    "norm_backward": norm.Config(4, 4, 2),
    "recurrent_forward": recurrent.Config(16, 4),
    "recurrent_backward": recurrent.Config(16, 4),
}


@pytest.fixture
def small_blocks():
    """Blocks so small that small problems have several of them and a tail."""
    with _tune.forced(**BLOCKS):
        yield


@pytest.fixture(autouse=True, scope="session")
def _quick_compiles():
    # Most of the time goes to compiling programs that run once.
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
