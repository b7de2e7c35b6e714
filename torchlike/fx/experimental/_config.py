"""Settings of torch.fx.experimental: they keep what they are given, so that programs can set them."""
import sys as _sys

from ...utils._config_module import install_config_module as _install_config_module

no_data_dependent_graph_break = translation_validation = translation_validation_no_bisect = check_shape_env_recorded_events = False
extended_debug_cpp = extended_debug_current_loc = print_specializations = inject_EVALUATE_EXPR_flip_equality_TESTING_ONLY = False
validate_shape_env_version_key = meta_nonzero_assume_all_nonzero = backed_size_oblivious = unify_view_symbols_bso_meta = False
skip_dtype_check_in_meta_registrations = enrich_profiler_metadata = soft_pending_unbacked_not_found_error = False
extended_debug_guard_added = extended_debug_create_symbol = symbol_guard_limit_before_specialize = None
use_duck_shape = True
translation_validation_timeout, aggressive_guard_free_semantics = 600_000, 0

_install_config_module(_sys.modules[__name__])
