"""What programs ask of a GPU's state and of attention's kernels, beside real torch without a GPU, and with a library of NVIDIA's that stands in for one."""
import importlib
import sys
import types

import pytest
from same import same

import torchlike


def asked(f):
    try:
        return f()
    except Exception as e:
        return f"{type(e).__name__}: {e}"


@same
def test_without_a_gpu(torch):
    """Errors are torch's; no kernel takes a call on the CPU."""
    cuda = importlib.import_module(f"{torch.__name__}.backends.cuda")
    q = torch.ones(1, 2, 4, 8)
    params = cuda.SDPAParams(q, q, q, None, 0.5, True, False)
    facts = params.query is q, params.attn_mask, params.dropout, params.is_causal, params.enable_gqa
    kernels = [f(params, debug) for f in (cuda.can_use_flash_attention, cuda.can_use_efficient_attention, cuda.can_use_cudnn_attention) for debug in (False, True)]
    readings = [asked(getattr(torch.cuda, name)) for name in "utilization memory_usage device_memory_used temperature power_draw clock_rate".split()]
    return facts, kernels, cuda.is_flash_attention_available(), readings


@pytest.fixture
def library(monkeypatch):
    """Two GPUs, as nvidia-ml-py tells of them."""
    made = types.ModuleType("pynvml")
    made.NVMLError_DriverNotLoaded = type("NVMLError_DriverNotLoaded", (Exception,), {})
    made.nvmlInit = lambda: None
    made.nvmlDeviceGetCount = lambda: 2
    made.nvmlDeviceGetHandleByIndex = lambda i: i
    made.nvmlDeviceGetHandleByUUID = lambda name: {"GPU-b": 1}[name]
    made.nvmlDeviceGetUtilizationRates = lambda h: types.SimpleNamespace(gpu=50 + h, memory=20 + h)
    made.nvmlDeviceGetMemoryInfo = lambda h: types.SimpleNamespace(used=1000 + h)
    made.nvmlDeviceGetTemperature = lambda h, sensor: 40 + h
    made.nvmlDeviceGetPowerUsage = lambda h: 70000 + h
    made.nvmlDeviceGetClockInfo = lambda h, which: 1500 + h
    monkeypatch.setitem(sys.modules, "pynvml", made)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return made


def test_readings(library, monkeypatch):
    """By the index of the process's GPUs, which CUDA_VISIBLE_DEVICES chooses."""
    cuda = torchlike.cuda
    found = [cuda.utilization(), cuda.utilization(1), cuda.memory_usage("cuda:1"), cuda.device_memory_used(0), cuda.temperature(torchlike.device("cuda:1")), cuda.power_draw(),
             cuda.clock_rate(1)]
    assert found == [50, 51, 21, 1000, 41, 70000, 1501]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert cuda.temperature(0) == 41
    with pytest.raises(RuntimeError, match="device 1 is not visible"):
        cuda.temperature(1)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-b")
    assert cuda.temperature(0) == 41

    def refuse():
        raise library.NVMLError_DriverNotLoaded
    library.nvmlInit = refuse
    with pytest.raises(RuntimeError, match="driver can't be loaded"):
        cuda.temperature()
