"""Settings of torch._functorch. There is no AOTAutograd: they keep what they are given, so that programs can set them."""
import sys

from ..utils._config_module import patch_of

donated_buffer = enable_autograd_cache = fake_tensor_allow_meta = cse = treat_parameters_as_free_to_save = view_replay_for_aliased_outputs = True
functionalize_rng_ops = debug_assert = debug_partitioner = bundled_autograd_cache = recompute_views = unlift_effect_tokens = False
activation_memory_budget, activation_memory_budget_solver, visualize_memory_budget_pareto = 1.0, "dp", False
ban_recompute_used_far_apart, max_dist_from_bw, backward_pass_autocast = True, 1000, "same_as_forward"
patch = patch_of(sys.modules[__name__])
