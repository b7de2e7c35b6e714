"""torch.cuda, xpu, mps, cpu and accelerator on a machine without GPU beside real torch; torch.cuda's machinery on a CPU posing as GPU."""
import ctypes
import threading
import types
import warnings

import jax
import pytest
import torch
from same import caught, error, same

import torchlike

CALLS = """
cuda.current_stream() cuda.default_stream() cuda.Stream() cuda.Event() cuda.Event(enable_timing=True) cuda.get_device_properties(0)
cuda.get_device_capability() cuda.get_device_name() cuda.reset_peak_memory_stats() cuda.reset_max_memory_allocated() cuda.max_memory_allocated()
cuda.memory_allocated() cuda.memory_reserved() cuda.memory_cached() cuda.memory_stats() cuda.memory_summary() cuda.mem_get_info() cuda.get_rng_state()
cuda.get_rng_state_all() cuda.set_rng_state_all([]) cuda.manual_seed(1) cuda.manual_seed_all(1) cuda.seed_all() cuda.initial_seed()
cuda.stream(None).__enter__() cuda.synchronize() cuda.empty_cache() cuda.ipc_collect() cuda.init() cuda.is_initialized() cuda.default_generators
cuda.set_device(0) cuda.device(0).__enter__() cuda.device(None).__enter__() cuda.device("cpu") cuda.is_bf16_supported() cuda.get_arch_list()
cuda.cudart() cuda.profiler.start() cuda.profiler.stop() cuda.profiler.profile().__enter__() cuda.cudaStatus.SUCCESS
cuda.get_gencode_flags() cuda.set_sync_debug_mode("warn") cuda.get_sync_debug_mode() cuda.has_half cuda.has_magma
cuda.is_current_stream_capturing() cuda.graph_pool_handle() cuda.can_device_access_peer(0,1) cuda.device_count() cuda.current_device()
xpu.is_available() xpu.device_count() xpu.empty_cache() xpu.synchronize() xpu.current_device() xpu.get_device_properties(0) xpu.manual_seed_all(1)
xpu.memory_allocated() xpu.get_rng_state() xpu.get_rng_state_all() xpu.is_bf16_supported() xpu.memory_stats()
mps.is_available() mps.device_count() mps.synchronize() mps.empty_cache() mps.manual_seed(1) mps.get_rng_state() mps.current_allocated_memory()
mtia.is_available() mtia.device_count() cpu.is_available() cpu.device_count() cpu.current_device() cpu.synchronize() cpu.Event().query()
accelerator.empty_cache() accelerator.memory_allocated() accelerator.get_memory_info() accelerator.device_index(0).__enter__()
compiler.is_compiling() compiler.is_exporting() compiler.reset() compiler.list_backends() compiler.cudagraph_mark_step_begin() compiler.disable(3)
accelerator.current_stream() accelerator.current_stream("cpu") accelerator.current_stream("cuda") xpu.device("cpu") xpu.device("xpu:1").__enter__()
xpu.stream(None).__enter__() xpu.set_stream(3) cuda.cudaStatus.ERROR_NOT_READY compiler.allow_in_graph(3) compiler.set_stance("other").__enter__()
cuda.memory_stats_as_nested_dict() cuda.host_memory_stats() cuda.host_memory_stats_as_nested_dict() cuda.get_per_process_memory_fraction()
cuda.set_per_process_memory_fraction(0.5) cuda.nccl.version() cuda.make_graphed_callables(abs,(1,)) accelerator.memory_stats()
accelerator.memory_reserved(0) accelerator.max_memory_reserved() accelerator.reset_accumulated_memory_stats() accelerator.empty_host_cache()
accelerator.get_device_capability() accelerator.memory.memory_allocated() compiler.config.recompile_limit compiler.config.patch(nothing=1).__enter__()
xpu.Stream() xpu.Stream("xpu") xpu.Event() xpu.memory_snapshot() xpu.default_generators xpu.memory_stats_as_nested_dict() xpu.get_arch_list()
xpu.get_gencode_flags() xpu.can_device_access_peer(0,1) xpu.get_stream_from_external(0) xpu.get_per_process_memory_fraction() xpu.seed() xpu.seed_all()
xpu.set_per_process_memory_fraction(0.5) xpu.is_tf32_supported()
""".split()


def outcome(m, call):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            found = eval(call, {**{n: getattr(m, n) for n in ("cuda", "xpu", "mps", "mtia", "cpu", "accelerator", "compiler")}})
        except Exception as error:
            found = type(error).__name__
    return found, [(w.category, str(w.message)) for w in said if w.category is FutureWarning]


@pytest.mark.parametrize("call", [c for c in CALLS if c not in ('compiler.set_stance("other").__enter__()', "cuda.memory_summary()")])
def test_without_gpu(call):
    assert outcome(torchlike, call) == outcome(torch, call)


@same
def test_numbers_and_names_of_devices_that_are_not_there(torch):
    x, layer = torch.ones(2), torch.nn.Linear(1, 1)
    return [error(f) for f in (x.cuda, lambda: x.cuda(1), lambda: x.cuda("cuda"), lambda: x.cuda("cuda:1"), lambda: x.cuda("cpu"), lambda: x.to(0),
                               lambda: torch.ones(1, device=0), lambda: torch.device(0), lambda: layer.cuda(1), lambda: layer.to(0))]


@same
def test_devices_that_no_build_has(torch):
    x, layer, g = torch.ones(2), torch.nn.Linear(1, 1), torch.Generator()
    return [error(f) for f in (x.xpu, x.mtia, x.ipu, layer.xpu, layer.mtia, layer.ipu, g.get_offset, lambda: g.set_offset(3))]


@same
def test_libraries_that_are_not_called(torch):
    """Their settings are kept; PyTorch's own wheel has NNPACK and MKL."""
    b, found = torch.backends, []
    found += [b.nnpack.set_flags(False), b.nnpack.set_flags(True)]
    with b.nnpack.flags(enabled=False):
        found.append(b.nnpack.set_flags(True))
    found += [b.nnpack.set_flags(True), b.kleidiai.is_available()]
    with b.miopen.flags(immediate=True):
        found.append(b.miopen.immediate)
    found += [b.miopen.immediate, b.miopen.set_flags(True), b.miopen.set_flags(False), b.mkl.VERBOSE_ON, b.mkl.VERBOSE_OFF, b.mkldnn.VERBOSE_ON_CREATION]
    for library in (b.mkl, b.mkldnn):
        with library.verbose(library.VERBOSE_OFF) as v:
            found.append(v)
    return found


def test_nothing_to_say_of_libraries_that_are_not_called(subject):
    with pytest.warns(UserWarning, match="no calls of MKL or oneDNN"), subject.backends.mkl.verbose(subject.backends.mkl.VERBOSE_ON) as v:
        assert v.enable == 1
    sparse = subject.backends.cusparselt
    assert (sparse.is_available(), sparse.version(), sparse.get_max_alg_id()) == (False, None, None)


@same
def test_short_names_of_dtypes(torch):
    names = """float32 float64 float16 bfloat16 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool complex64 complex128 float8_e4m3fn float8_e5m2
               float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu qint8 quint8 qint32""".split()
    return {name: getattr(torch, name).abbr for name in names}, error(setattr, torch.float32, "abbr", 3)


@same
def test_functions_of_arrays_take_tensors(torch):
    f = torch.compiler.wrap_numpy(lambda x, y, scale: (x.sum(0), {"product": x * y * scale}))
    x, y = torch.arange(6.0).reshape(2, 3), torch.ones(3)
    return f(x, y, scale=2), error(f, x.requires_grad_(), y, 2), torch.compiler.nested_compile_region(lambda x: x + 1)(y), torch.compiler.nested_compile_region()(f)(y, y, 2)


def test_cuda_seed_leaves_the_cpu_alone():
    found = []
    for m in (torch, torchlike):
        m.manual_seed(3)
        m.cuda.manual_seed_all(5)
        m.cuda.set_rng_state(m.get_rng_state())
        found.append(m.rand(3).tolist())
    assert found[0] == found[1]


@pytest.fixture
def posing(monkeypatch):
    """The CPU as GPU: what JAX offers of both is the same, except memory counters."""
    cpu = jax.local_devices(backend="cpu")
    monkeypatch.setattr(torchlike.cuda._devices, "is_available", lambda: True)
    monkeypatch.setattr(torchlike.cuda._devices, "device_count", lambda: len(cpu))
    monkeypatch.setattr(torchlike.cuda.memory, "is_available", lambda: True)
    monkeypatch.setattr(torchlike.cuda._devices.jax, "local_devices", lambda backend=None: cpu)
    return torchlike.cuda


def test_events(posing):
    start, end, plain = posing.Event(enable_timing=True), posing.Event(enable_timing=True), posing.Event()
    with pytest.raises(ValueError):
        start.elapsed_time(end)
    start.record()
    x = torchlike.ones(300, 300)
    for _ in range(3):
        x = x @ x / 300
    end.record()
    assert 0 < start.elapsed_time(end) < 1e5
    assert x._value.array is not None  # recording an event runs what came before it
    stream = posing.current_stream()
    stream.record_event(plain)
    plain.synchronize()
    assert plain.query() and stream == posing.Stream()
    with pytest.raises(ValueError):
        start.elapsed_time(plain)
    with posing.stream(posing.Stream()):
        posing.current_stream().wait_stream(posing.default_stream())


def test_functions_and_modules_whose_work_is_recorded_once(posing, monkeypatch):
    monkeypatch.setattr(posing.graphs, "need", lambda: None)
    plain, layer = torchlike.nn.Linear(3, 2), torchlike.nn.Linear(3, 2)
    layer.load_state_dict(plain.state_dict())
    double, same_layer = posing.make_graphed_callables((lambda x: x * 2, layer), ((torchlike.ones(3),), (torchlike.ones(3),)))
    assert same_layer is layer
    for k in range(4):
        x = torchlike.arange(3.0) + k
        double(layer(x)).sum().backward()
        (plain(x) * 2).sum().backward()
        assert double(layer(x)).tolist() == (plain(x) * 2).tolist()
    assert layer.weight.grad.tolist() == plain.weight.grad.tolist()


def test_the_part_of_a_gpu_s_memory_is_what_xla_took(posing, monkeypatch):
    monkeypatch.setenv("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.5")
    monkeypatch.setattr(posing.memory, "need", lambda: None)
    posing.set_per_process_memory_fraction(0.5)
    with pytest.warns(UserWarning, match="XLA_PYTHON_CLIENT_MEM_FRACTION=0.3"):
        posing.set_per_process_memory_fraction(0.3)
    assert posing.get_per_process_memory_fraction() == 0.5
    assert [error(posing.set_per_process_memory_fraction, x) for x in (1, 1.5)] == ["TypeError", "ValueError"]
    monkeypatch.setattr(posing.memory, "_read", lambda name, device: 7)
    assert posing.memory_stats_as_nested_dict()["reserved_bytes"] == {"all": {"current": 7, "peak": 7}}


def test_the_mode_for_waiting_is_kept(posing):
    posing.set_sync_debug_mode("error")
    assert posing.get_sync_debug_mode() == 2
    posing.set_sync_debug_mode(0)
    assert posing.get_sync_debug_mode() == 0
    with pytest.raises(RuntimeError, match="expected one of `default`, `warn`, `error`"):
        posing.set_sync_debug_mode("loud")


def test_the_runtime_is_told_what_to_profile(posing, monkeypatch):
    asked, code = [], [0]

    def ask(name, *args):
        asked.append((name, *args))
        return code[0]

    def text(error):
        return b"invalid argument"
    library = types.SimpleNamespace(cudaGetErrorString=text)
    for name in ("cudaProfilerStart", "cudaProfilerStop", "cudaHostRegister"):
        setattr(library, name, lambda *args, name=name: ask(name, *args))
    monkeypatch.setattr(torchlike.cuda._cudart, "need", lambda: None)
    monkeypatch.setattr(torchlike.cuda._cudart, "_library", lambda: library)
    with posing.profiler.profile():
        posing.check_error(posing.cudart().cudaHostRegister(4096, 8, 0))
    assert asked == [("cudaProfilerStart",), ("cudaHostRegister", 4096, 8, 0), ("cudaProfilerStop",)]
    assert library.cudaHostRegister.argtypes == (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint)
    code[0] = 1
    with pytest.raises(posing.CudaError, match=r"invalid argument \(1\)"):
        posing.profiler.start()
    assert issubclass(posing.CudaError, RuntimeError) and posing.cudart().cudaError.success == posing.cudaStatus.SUCCESS == 0


def test_peaks_count_from_the_reset(posing, monkeypatch):
    now = {"bytes_in_use": 10, "peak_bytes_in_use": 100}
    monkeypatch.setattr(torchlike.cuda.memory, "_read", lambda name, device: now.get(name, 0))
    assert posing.max_memory_allocated() == 100
    posing.reset_peak_memory_stats()
    assert posing.max_memory_allocated() == 10
    now["bytes_in_use"] = 60
    assert posing.max_memory_allocated() == 60
    now.update(bytes_in_use=20, peak_bytes_in_use=130)
    assert posing.max_memory_allocated() == 130
    torchlike.cuda.memory._since.clear()


def test_out_of_memory_is_torchs_error():
    from torchlike._core.errors import of_device
    assert isinstance(of_device(jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory")), torchlike.cuda.OutOfMemoryError)
    other = jax.errors.JaxRuntimeError("INTERNAL: x")
    assert of_device(other) is other
    assert torchlike.OutOfMemoryError is torchlike.cuda.OutOfMemoryError and issubclass(torchlike.OutOfMemoryError, RuntimeError)


def compiled_programs(m, **options):
    seen = []

    @m.compiler.disable
    def outside(x):
        seen.append(m.compiler.is_compiling())
        return x * 2

    @m.compile(**options)
    def whole(x):
        return outside(x) + 1

    @m.compile(**options)
    def asks(x):
        return x + 1 if m.compiler.is_compiling() else x

    out = [whole(m.full((2,), float(i))).tolist() for i in range(4)]
    out += [asks(m.zeros(1)).tolist() for _ in range(3)]
    with m.compiler.set_stance("force_eager"):
        out.append(asks(m.zeros(1)).tolist())
    out.append(asks(m.zeros(1)).tolist())
    with m.compiler.set_stance("eager_on_recompile"):
        out.append(asks(m.zeros(1, dtype=m.float64)).tolist())
    with m.compiler.set_stance("fail_on_recompile"), pytest.raises(RuntimeError):
        asks(m.zeros(1, dtype=m.float64))
    with pytest.raises(RuntimeError):
        with m.compiler.set_stance("other"):
            asks(m.zeros(1))
    m.compiler.set_stance("default")
    linear = m.compiler.disable(m.nn.Linear(2, 2))
    m.compiler.reset()
    return out, seen, list(linear.state_dict()), outside.__name__, linear(m.zeros(1, 2)).shape


def test_compiler():
    mine, real = compiled_programs(torchlike), compiled_programs(torch, backend="eager")
    assert mine == real


@same
def test_meta_tensors_draw_no_numbers(torch):
    """Models are built on meta before they are loaded; the program's own random numbers must not move."""
    torch.manual_seed(0)
    made = [torch.randn(5, device="meta"), torch.rand(2, 3, device="meta"), torch.randperm(5, device="meta"),
            torch.randint(0, 5, (3,), device="meta"), torch.rand_like(torch.empty(5, device="meta")), torch.empty(5, device="meta").bernoulli_(0.5),
            torch.empty(4, device="meta").random_(), torch.nn.functional.dropout(torch.empty(5, device="meta"))]
    with torch.device("meta"):
        made += [torch.nn.Linear(3, 3).weight, torch.nn.Embedding(4, 4).weight, torch.randn(4)]
    return [(t.shape, str(t.dtype), str(t.device)) for t in made], torch.rand(1).item()


def test_streams_and_events_of_a_device_are_streams_and_events():
    """As where torch has CUDA: without it, its classes have placeholders for bases."""
    assert issubclass(torchlike.cuda.Stream, torchlike.Stream) and issubclass(torchlike.cuda.Event, torchlike.Event)


def test_streams_of_a_posing_device(posing):
    assert isinstance(posing.current_stream(), torchlike.Stream) and isinstance(posing.Event(), torchlike.Event)


@pytest.mark.parametrize("text", ["cpu:", "cpu:x", "cuda:-1", "a b", "", "cpu:01", "cuda:00", "cpu:-1", "1", "cuda:1:2", ":0", "CPU", "cp u", "_x", "foo_1", "foo:1", "x-y",
                                  "cuda0", "cpu:1", "meta:0", "cuda:1"])
@same
def test_device_strings(torch, text):
    def read(f):
        try:
            return str(f(text))
        except RuntimeError as error:
            return str(error).replace(", tpu device type", " device type")
    return read(torch.device), read(lambda s: str(torch.amp.is_autocast_available(s.partition(":")[0]))), read(lambda s: torch.ones(1).to(s).device) if " " in text else None


def test_a_device_is_no_function():
    """Programs ask `callable(x)` to tell what makes a device from a device (imagen-pytorch's defaults)."""
    for of in torch, torchlike:
        assert not callable(of.device("cpu")) and "__call__" not in dir(of.device("cpu"))
    assert error(lambda: torch.device("cpu")(len)) == error(lambda: torchlike.device("cpu")(len))


@same
def test_a_generator_of_no_device_and_a_device_by_name(torch):  # autoray's generators
    with torch.device("meta"):
        kept = str(torch.Generator(device=None).device)
    made = [str(torch.device(device=given)) for given in ("cpu", torch.device("cuda", 1), "cuda:2")]
    return str(torch.Generator(None).device), kept, made, *(caught(torch.device, **given) for given in (
        {"device": None}, {"index": 0}, {"device": "cpu", "index": 0}, {"name": "cpu"}, {"type": "cpu", "device": "cpu"}))


@same
def test_default_devices_are_of_a_thread(torch):
    found = []

    def other():
        found.append((str(torch.ones(1).device), str(torch.get_default_device())))
        torch.set_default_device("cpu")
    torch.set_default_device("meta")
    for _ in range(2):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        found.append(str(torch.nn.Linear(1, 1).weight.device))
    torch.set_default_device(None)
    return found, str(torch.ones(1).device)
