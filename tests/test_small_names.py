"""Small public functions that stand alone: switches that only tell what was set, batch norms without statistics; functions as attributes
of classes; against real torch."""
import pytest
from same import caught, error, outcomes, same


@same
def test_multithreading(torch):
    grad = torch.autograd
    found = [grad.is_multithreading_enabled()]
    with grad.set_multithreading_enabled(False):
        found.append(grad.is_multithreading_enabled())
        with grad.set_multithreading_enabled(True):
            found.append(grad.is_multithreading_enabled())
        found.append(grad.is_multithreading_enabled())

    @grad.set_multithreading_enabled(False)
    def inside():
        return grad.is_multithreading_enabled()
    return found, inside(), grad.is_multithreading_enabled()


@same
def test_batch_norms_without_statistics(torch):
    nn = torch.nn
    net = nn.Sequential(nn.BatchNorm1d(2), nn.Sequential(nn.BatchNorm2d(2)), nn.SyncBatchNorm(2), nn.InstanceNorm1d(2, track_running_stats=True))
    made = torch.func.replace_all_batch_norm_modules_(net)
    x = torch.randn(3, 2)
    return made is net, str(net), sorted(net.state_dict()), net[0](x), net.eval()[0](x), net[0].running_mean


@same
def test_memory_by_dlpack(torch):
    """Capsules and objects of the protocol show the memory they are given; streams are checked."""
    from importlib import import_module
    dlpack = import_module(torch.__name__ + ".utils.dlpack")

    class Wrapped:
        def __init__(self, t):
            self.t = t

        def __dlpack__(self, **options):
            return self.t.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.t.__dlpack_device__()
    x = torch.arange(4.0)
    by_capsule, by_object = dlpack.from_dlpack(dlpack.to_dlpack(x)), torch.from_dlpack(Wrapped(x))
    by_capsule[0] = 9
    by_object[1] = 8
    x[2] = 7
    copies = torch.tensor(Wrapped(x)), torch.tensor(Wrapped(x), dtype=torch.int32), torch.as_tensor(Wrapped(x))
    return (x, by_capsule, by_object, copies, caught(x.__dlpack__, stream=object()), caught(x.__dlpack__, stream=2),
            torch.from_dlpack(Wrapped(torch.arange(4.0)[::2])))


@same
def test_view_of_the_same_type(torch):
    """view(dtype) leaves the graph, whatever the type."""
    x = torch.ones(2, requires_grad=True)
    y = torch.ones(2)
    y.view(torch.float32)[0] = 5
    return [(x.view(d).requires_grad, x.view(d).is_leaf) for d in (torch.float32, torch.int32)], y, y.t().view(torch.float32).stride()


@same
def test_futures_that_are_none(torch):
    from importlib import import_module
    futures = import_module(torch.__name__ + ".futures")
    return caught(futures.wait_all, (None,)), caught(futures.collect_all, (futures.Future(), None))


@same
def test_segment_reduce_by_its_inner_name(torch):
    return torch._segment_reduce(torch.arange(6.0), "sum", lengths=torch.tensor([2, 4])), torch._segment_reduce(
        torch.arange(6.0), "max", offsets=torch.tensor([0, 2, 6]))


@same
def test_default_device_of_a_function(torch):
    from importlib import import_module
    device = import_module(torch.__name__ + ".utils._device")

    @device.set_device("meta")
    def one():
        return torch.empty(2).device.type

    @device.set_device("meta")
    def several():
        yield torch.empty(2).device.type
        yield torch.ones(2).device.type
    context = device.DeviceContext("meta")
    with context:
        inside = torch.zeros(1).device.type
    return one(), list(several()), inside, str(context.device), torch.zeros(1).device.type


@same
def test_embedding_bag_under_torchs_own_name(torch):
    table, index, starts = torch.tensor([[3.0, 0, 1], [2, 5, 1], [0, 0, 9], [1, 1, 1]]), torch.tensor([0, 1, 2, 3, 0]), torch.tensor([0, 2, 2, 4])
    found, ends = [], torch.tensor([0, 2, 2, 5])
    for weight in (table, table.double()):
        for mode in (0, 1, 2):
            for last in (False, True):
                for padding in (None, -1, 0):
                    for scale in (None, torch.arange(5.0, dtype=weight.dtype)) if mode == 0 else (None,):
                        found.append(torch.embedding_bag(weight, index, ends if last else starts, False, mode, False, scale, last, padding))
    leaf = table.clone().requires_grad_()
    torch.embedding_bag(leaf, index.int(), starts.int(), mode=1)[0].sum().backward()
    return found, leaf.grad, torch.embedding_bag(table, index.int(), starts.int(), mode=2)


@same
def test_functions_that_are_attributes_of_a_class(torch):
    """PyTorch's functions are built in: found by an instance they do not take it as their first argument."""
    functional = torch.nn.functional

    class Plain:
        conv, relu, cat, zeros, square, matmul, add, where, largest = (
            torch.conv2d, torch.relu, torch.cat, torch.zeros, torch.square, torch.matmul, torch.add, torch.where, torch.max)
        gelu, linear, norm, fft, arange, made = functional.gelu, functional.linear, torch.linalg.vector_norm, torch.fft.fft, torch.arange, torch.tensor

    class Layer(Plain, torch.nn.Module):
        pass

    x, found = torch.arange(9.0).view(1, 1, 3, 3), []
    for c in (Plain(), Layer()):
        found.append(outcomes({"c": c, "x": x, "out": torch.empty(0)}, [
            "c.conv(x, weight=x)", "c.conv(x, x)", "c.relu(-x)", "c.cat([x, x])", "c.cat((x, x), dim=1)", "c.zeros(2, 3)", "c.square(x)",
            "c.square(x, out=out)", "out", "c.matmul(x, x)", "c.add(x, x, alpha=2)", "c.where(x > 2, x, 0.5)", "c.largest(x, 2)[1]", "c.gelu(x)",
            "c.linear(x, x[0, 0])", "c.norm(x)", "c.fft(x)", "c.arange(4)", "c.made([1.0])", "c.relu('a')", "c.relu()", "c.cat(5)", "c.add(x)"]))
    return found


@same
def test_levels_of_loggers(torch):
    import logging

    logs, names = torch._logging, ("torch", "torch._dynamo", "torch.fx.experimental.symbolic_shapes", "torch._inductor", "torch.distributed", "json")
    asked = logs.getArtifactLogger("some.module", "recompiles")
    found = [asked.name]
    for chosen in ({}, {"recompiles": True}, {"dynamo": logging.INFO, "recompiles": False}, {"all": logging.ERROR}, {"all": logging.ERROR, "dynamo": logging.DEBUG},
                   {"modules": {"json": logging.INFO}}, {"recompiles": 3}, {"dynamo": True}, {"dynamo": 15}, {"all": 3.5}, {"modules": {"no.such": 10}},
                   {"nothing": 1}, {"recompiles": None, "dynamo": None, "graph_breaks": True}, {}):
        found.append((caught(lambda: logs.set_logs(**chosen)), [logging.getLogger(name).level for name in names], asked.level,  # noqa: B023
                      logs.getArtifactLogger("other", "graph_breaks").level))
    return found, caught(logs.getArtifactLogger, "a", "nothing")


@same
def test_no_named_dimensions(torch):
    """PyTorch has them no more; names that were taken and lost would be worse than the error."""
    given = ((torch.zeros, 2, 3), (torch.ones, 2, 3), (torch.empty, 2, 3), (torch.rand, 2, 3), (torch.randn, 2, 3), (torch.full, (2, 3), 1.0),
             (torch.tensor, [[1.0]]), (torch.arange, 3))
    tensors = torch.ones(2), torch.ones(2).to_sparse(), torch.nn.Parameter(torch.ones(2))
    return [error(f, *args, names=("a", "b")) for f, *args in given], [hasattr(t, "names") for t in tensors]


@same
def test_methods_as_functions(torch):
    x = torch.arange(4.).requires_grad_()
    y, t = x * 2, torch.zeros(2)
    made = torch.detach_(y) is y, torch.fill_(t, 3) is t, torch.fill_(t, torch.tensor(4)), torch.get_device(t)
    return made, y.requires_grad, error(torch.fill_, x, 1), error(torch.detach_, (x * 2)[:2]), torch.from_dlpack(torch.to_dlpack(torch.ones(2)))


@same
def test_convolution_by_one_function(torch):
    x, w = torch.randn(2, 4, 6), torch.randn(4, 2, 3)
    return torch.convolution(x, w, None, [1], [1], [1], False, [0], 2), torch.convolution(x, w, torch.ones(4), [2], [0], [1], True, [1], 2)


@same
def test_foreach_copy(torch):
    to, source = [torch.ones(2), torch.ones(3, dtype=torch.int64)], [torch.full((2,), 2.5), torch.full((3,), 2.5)]
    made = torch._foreach_copy_(to, source, True) is to
    return made, to, error(torch._foreach_copy_, to, [1., 2.]), error(torch._foreach_copy_, to, source[:1]), error(torch._foreach_copy_, to, 1)


@pytest.mark.parametrize("name", ["OutOfMemoryError", "AcceleratorError", "Stream", "Event", "Generator", "finfo", "iinfo", "layout", "memory_format", "Future",
                                  "linalg.LinAlgError", "Tensor", "nn.Parameter", "Size", "dtype", "device", "qscheme", "SymInt", "FloatTensor", "cuda.LongTensor",
                                  "UntypedStorage", "TypedStorage", "BoolStorage", "StorageBase", "return_types.max", "return_types.topk_out", "jit.Error",
                                  "jit.ScriptFunction", "_C._autograd.SavedTensor"])
def test_classes_pickled_where_torch_is_another_library(name):
    import copy
    import operator
    import pickle

    import torchlike
    cls = operator.attrgetter(name)(torchlike)
    assert all(pickle.loads(pickle.dumps(cls, protocol)) is cls for protocol in range(6)) and copy.copy(cls) is copy.deepcopy(cls) is cls
    if issubclass(cls, Exception):
        again = pickle.loads(pickle.dumps(cls("words")))
        assert type(again) is cls and str(again) == "words"


@same
def test_powers_of_two_as_a_dtype(torch):
    """float8_e8m0fnu: exponents alone."""
    d = torch.float8_e8m0fnu
    x = torch.tensor([1.0, 1.4, 1.5, 1.6, 3.0, 0.0, -1.0, 1e-40, float("nan"), float("inf"), 2.0 ** -127, 1e38, 3e38, 0.75, 6.0, 12.0, 2.0 ** -126 * 0.6])
    y = x.to(d)
    return (str(d), d.itemsize, d.is_floating_point, str(torch.finfo(d)), str(y), y.view(torch.uint8), y.float(), y.double(), y.half(), y.bfloat16(), y.tolist(),
            torch.zeros(2, dtype=d).view(torch.uint8), torch.full((2,), 3.0, dtype=d).view(torch.uint8), torch.zeros_like(y).view(torch.uint8), torch.isnan(y), y == y,
            torch.cat([y, y]).view(torch.uint8), y.reshape(1, -1).T.contiguous().view(torch.uint8), error(torch.promote_types, d, torch.float32), error(y.numpy),
            x.bfloat16().to(d).view(torch.uint8), torch.tensor([1, 2], dtype=d).view(torch.uint8), x.double().to(d).view(torch.uint8), torch.arange(9).to(d).view(torch.uint8))


def test_attention_that_a_program_registers():
    from torchlike.nn import attention
    seen = []

    class Handle:
        def remove(self):
            seen.append("removed")
    attention.register_flash_attention_impl("mine", register_fn=lambda: seen.append("made") or Handle())
    assert attention.current_flash_attention_impl() is None and attention.list_flash_attention_impls() == ["mine"]
    attention.activate_flash_attention_impl("mine")
    assert attention.current_flash_attention_impl() == "mine"
    attention.restore_flash_attention_impl()
    assert attention.current_flash_attention_impl() is None and seen == ["made", "removed"]
    with pytest.raises(ValueError, match="Unknown flash attention impl 'x'"):
        attention.activate_flash_attention_impl("x")


@same
def test_switches_of_other_machines(torch):
    allowed = torch.backends.cuda
    before = allowed.fp16_bf16_reduction_math_sdp_allowed()
    allowed.allow_fp16_bf16_reduction_math_sdp(True)
    seen = before, allowed.fp16_bf16_reduction_math_sdp_allowed()
    allowed.allow_fp16_bf16_reduction_math_sdp(before)
    return (seen, error(torch.backends.mps.is_macos_or_newer, 13, 0), torch.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(False),
            torch.autograd.kineto_available(), torch.xpu.set_rng_state(torch.get_rng_state()),
            {name: member.value for name, member in torch.profiler.ProfilerActivity.__members__.items()})


@same
def test_what_extensions_ask(torch):
    """The C++ classes that a build has."""
    return torch.compiled_with_cxx11_abi(), caught(torch.compiled_with_cxx11_abi, 1)
