"""Settings of torch._inductor. There is no Inductor: they keep what they are given, so that programs can set them."""
import sys

from ..utils._config_module import patch_of

coordinate_descent_tuning = coordinate_descent_check_all_directions = False
epilogue_fusion = shape_padding = layout_optimization = split_reductions = reorder_for_locality = True
conv_1x1_as_mm = force_fuse_int_mm_with_mul = fallback_random = freezing = debug = False
max_autotune = max_autotune_gemm = max_autotune_pointwise = benchmark_kernel = benchmark_fusion = False
max_autotune_gemm_backends = "ATEN,TRITON,CPP"
use_mixed_mm = fx_graph_cache = True


class triton:
    cudagraphs = cudagraph_skip_dynamic_graphs = unique_user_kernel_names = False
    cudagraph_trees = unique_kernel_names = True


class cpp:
    threads = -1
    weight_prepack = True


class trace:
    enabled = False


patch = patch_of(sys.modules[__name__])
