"""Settings of torch.compiler: they keep what they are given, so that programs can set them."""
import sys

from ..utils._config_module import patch_of

recompile_limit, accumulated_recompile_limit = 8, 256
job_id = log_file_name = None
cache_key_tag = dynamic_sources = unbacked_sources = ""
dynamic_shapes = assume_static_by_default = automatic_dynamic_shapes = skip_tensor_guards_with_matching_dict_tags = True
wrap_top_frame = enable_cpp_symbolic_shape_guards = allow_unspec_int_on_nn_module = False
capture_scalar_outputs = capture_dynamic_output_shape_ops = fail_on_recompile_limit_hit = force_disable_caches = force_cudagraph_gc = verbose = False
reorderable_logging_functions: set = set()
patch = patch_of(sys.modules[__name__])
