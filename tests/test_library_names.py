"""Small names that libraries on top of torch (transformers, accelerate) ask for when they are imported."""
import os
import tempfile
import threading

from same import error, same


@same
def test_a_dictionary_flattened_with_its_keys(torch):
    pairs, context = torch.utils._pytree._dict_flatten_with_keys({"a": 1, 2: 3})
    return [(str(k), v) for k, v in pairs], context


@same
def test_graphs_need_a_gpu(torch):
    return isinstance(torch.cuda.CUDAGraph, type), error(torch.cuda.CUDAGraph), error(torch.cuda.graph, None)


@same
def test_marks_of_the_compiler(torch):
    def f():
        return 1
    marked = torch._dynamo.assume_constant_result(f)
    module = torch.compile(torch.nn.Linear(2, 2))
    return (marked is f, f.__dict__, torch.compiler.assume_constant_result(f) is f,
            isinstance(module, torch._dynamo.eval_frame.OptimizedModule))


@same
def test_settings_of_the_compiler(torch):
    from importlib import import_module
    config = import_module(f"{torch.__name__}._inductor.config")
    before = vars_of(config)
    config.coordinate_descent_tuning = config.triton.cudagraphs = True
    after = torch._inductor.config.coordinate_descent_tuning, config.triton.cudagraphs
    config.coordinate_descent_tuning = config.triton.cudagraphs = False
    return before, after


def vars_of(config):
    names = ("coordinate_descent_tuning", "epilogue_fusion", "conv_1x1_as_mm", "max_autotune", "max_autotune_gemm_backends",
             "fx_graph_cache", "force_fuse_int_mm_with_mul", "use_mixed_mm", "shape_padding", "freezing", "fallback_random")
    return ([getattr(config, name) for name in names], config.triton.unique_kernel_names, config.triton.cudagraphs,
            config.cpp.threads, config.trace.enabled)


@same
def test_extensions_cannot_be_built(torch):
    from importlib import import_module
    extension = import_module(f"{torch.__name__}.utils.cpp_extension")
    return (extension.CUDA_HOME, extension.ROCM_HOME, extension.IS_WINDOWS, extension.get_default_build_root(),
            extension.is_ninja_available(), extension.get_cxx_compiler())


@same
def test_file_baton(torch):
    from importlib import import_module
    lock = tempfile.mkdtemp() + "/lock"
    first, second = (import_module(f"{torch.__name__}.utils.file_baton").FileBaton(lock, wait_seconds=0.01) for _ in range(2))
    seen = first.try_acquire(), second.try_acquire(), os.path.exists(lock)
    threading.Timer(0.05, first.release).start()
    second.wait()
    return seen, os.path.exists(lock), second.try_acquire(), second.release()


@same
def test_scalar_tensors_as_indices_under_vmap(torch):
    from importlib import import_module
    mode = import_module(f"{torch.__name__}._dynamo._trace_wrapped_higher_order_op").TransformGetItemToIndex
    x = torch.arange(12).reshape(3, 4)
    with mode():
        outside = x[torch.tensor(1)]
        inside = torch.vmap(lambda i, j: x[i, j])(torch.tensor([0, 1]), torch.tensor([2, 3]))
    return outside, inside


@same(strides=True)
def test_convolutions_keep_channels_last(torch):
    x, weight = torch.randn(2, 8, 6, 6), torch.randn(4, 2, 3, 3)
    last, patches = x.to(memory_format=torch.channels_last), torch.randn(2, 36, 8).transpose(1, 2).view(2, 8, 6, 6)
    conv = torch.nn.functional.conv2d
    return (conv(last, weight, groups=4), conv(patches, weight, torch.ones(4), groups=4), conv(x, weight, groups=4),
            conv(x, weight.to(memory_format=torch.channels_last), groups=4, padding=1),
            torch.nn.functional.conv_transpose2d(last, torch.randn(8, 3, 2, 2)), conv(patches, torch.randn(3, 8, 6, 6)))


@same(strides=True)
def test_what_follows_a_convolution_keeps_channels_last(torch):
    x, f = torch.randn(2, 8, 6, 6).to(memory_format=torch.channels_last), torch.nn.functional
    return (f.batch_norm(x, torch.zeros(8), torch.ones(8)), f.batch_norm(x, torch.zeros(8), torch.ones(8), training=True),
            f.max_pool2d(x, 2), f.avg_pool2d(x, 2), f.adaptive_max_pool2d(x, 3),
            f.interpolate(x, scale_factor=2, mode="bilinear"), f.interpolate(x, scale_factor=2), torch.cat([x, x], 1),
            torch.cat([x, x.contiguous()], 1), f.max_pool2d(x.contiguous(), 2))


@same
def test_clamp_takes_a_tensor_without_dimensions_for_a_number(torch):
    i, x, low = torch.arange(5), torch.arange(5.0), torch.tensor([2.0, 3, 1, 0, 2])
    return (torch.clamp(i, 0, torch.tensor(3)), torch.clamp(i, 0.5, torch.tensor(3)), i.clamp(torch.tensor(1), 2.5),
            x.half().clamp(1, torch.tensor(2.0, dtype=torch.float64)), error(torch.clamp, x, 1, low),
            error(torch.clamp, x, low, 2.5), error(torch.clamp, x, True, low), error(i.clamp_, 0.5, torch.tensor(3)))


@same
def test_values_of_script_graphs(torch):
    return torch._C.Value.__name__, isinstance(torch.ones(1), torch._C.Value), error(torch._C.Value)
