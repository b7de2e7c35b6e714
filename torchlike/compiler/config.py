"""Settings of torch.compiler: they keep what they are given, so that programs can set them."""
import os as _os
import sys as _sys

from ..utils._config_module import Alias as _Alias
from ..utils._config_module import install_config_module as _install_config_module

job_id = _os.environ.get("TORCH_COMPILE_JOB_ID", _os.environ.get("TORCH_COMPILE_STICKY_PGO_KEY"))
pgo_extra_read_key = pgo_extra_write_key = None
cache_key_tag = dynamic_sources = dynamic_values = unbacked_sources = ""
force_disable_caches = force_cudagraph_gc = False
_install_config_module(_sys.modules[__name__], {name: _Alias(f"torch._dynamo.config.{name}") for name in (
    "dynamic_shapes", "assume_static_by_default", "automatic_dynamic_shapes", "recompile_limit", "accumulated_recompile_limit", "verbose",
    "capture_scalar_outputs", "capture_dynamic_output_shape_ops", "log_file_name", "fail_on_recompile_limit_hit", "allow_unspec_int_on_nn_module",
    "skip_tensor_guards_with_matching_dict_tags", "enable_cpp_symbolic_shape_guards", "wrap_top_frame", "reorderable_logging_functions")})
