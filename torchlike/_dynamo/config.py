"""Settings of torch._dynamo. There is no Dynamo: they keep what they are given, so that programs can set them."""
import sys

from ..utils._config_module import patch_of

cache_size_limit = recompile_limit = 8
accumulated_cache_size_limit = accumulated_recompile_limit = 256
suppress_errors = verbose = capture_scalar_outputs = capture_dynamic_output_shape_ops = False
assume_static_by_default = automatic_dynamic_shapes = optimize_ddp = inline_inbuilt_nn_modules = True
skip_fwd_side_effects_in_bwd_under_checkpoint = trace_autograd_ops = False
reorderable_logging_functions: set = set()
patch = patch_of(sys.modules[__name__])
