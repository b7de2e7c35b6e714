"""Settings of torch._dynamo. There is no Dynamo: they keep what they are given, so that programs can set them."""

cache_size_limit = recompile_limit = 8
accumulated_cache_size_limit = accumulated_recompile_limit = 256
suppress_errors = verbose = capture_scalar_outputs = capture_dynamic_output_shape_ops = False
assume_static_by_default = automatic_dynamic_shapes = optimize_ddp = inline_inbuilt_nn_modules = True
