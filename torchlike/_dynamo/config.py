"""Settings of torch._dynamo. There is no Dynamo: but for `disable` they keep what they are given, so that programs can set them."""
import sys
from types import ModuleType

from .._compile import stance
from ..utils._config_module import patch_of

cache_size_limit = recompile_limit = 8
accumulated_cache_size_limit = accumulated_recompile_limit = 256
suppress_errors = verbose = capture_scalar_outputs = capture_dynamic_output_shape_ops = False
assume_static_by_default = automatic_dynamic_shapes = optimize_ddp = inline_inbuilt_nn_modules = True
skip_fwd_side_effects_in_bwd_under_checkpoint = trace_autograd_ops = False
reorderable_logging_functions: set = set()
patch = patch_of(sys.modules[__name__])


class _Config(ModuleType):
    """This module, whose `disable` is what compiled functions ask."""

    @property
    def disable(self) -> bool:
        return stance.disabled

    @disable.setter
    def disable(self, on: bool) -> None:
        stance.disabled = bool(on)


sys.modules[__name__].__class__ = _Config
