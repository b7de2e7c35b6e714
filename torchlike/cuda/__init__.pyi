"""Written by `python scripts/stubs.py`."""
import builtins
from torchlike._tensor import Tensor as Tensor

from torchlike._core.errors import AcceleratorError as AcceleratorError
class BFloat16Tensor(Tensor): ...
class BoolTensor(Tensor): ...
class ByteTensor(Tensor): ...
from torchlike.cuda.graphs import CUDAGraph as CUDAGraph
class CharTensor(Tensor): ...
from torchlike.cuda._cudart import CudaError as CudaError
class DoubleTensor(Tensor): ...
from torchlike.cuda.streams import Event as Event
class FloatTensor(Tensor): ...
from torchlike.ops.random import Generator as Generator
class HalfTensor(Tensor): ...
class IntTensor(Tensor): ...
class LongTensor(Tensor): ...
from torchlike._core.errors import OutOfMemoryError as OutOfMemoryError
class ShortTensor(Tensor): ...
from torchlike.cuda.streams import Stream as Stream
from torchlike.cuda.streams import StreamContext as StreamContext
from torchlike.cuda import amp as amp
from torchlike.cuda._devices import can_device_access_peer as can_device_access_peer
from torchlike.cuda._cudart import check_error as check_error
from torchlike.cuda._nvml import clock_rate as clock_rate
from torchlike.cuda._cudart import cudaStatus as cudaStatus
from torchlike.cuda._cudart import cudart as cudart
from torchlike.cuda._devices import current_device as current_device
from torchlike.cuda.streams import current_stream as current_stream
from torchlike.ops.random import default_generator as default_generator
from torchlike.cuda.streams import default_stream as default_stream
from torchlike.cuda._devices import device as device
from torchlike.cuda._devices import device_count as device_count
from torchlike.cuda._nvml import device_memory_used as device_memory_used
from torchlike.cuda._devices import device_of as device_of
from torchlike.cuda.memory import empty_cache as empty_cache
from torchlike.cuda._devices import get_arch_list as get_arch_list
from torchlike.cuda._devices import get_device_capability as get_device_capability
from torchlike.cuda._devices import get_device_name as get_device_name
from torchlike.cuda._devices import get_device_properties as get_device_properties
from torchlike.cuda._devices import get_gencode_flags as get_gencode_flags
from torchlike.cuda.memory import get_per_process_memory_fraction as get_per_process_memory_fraction
from torchlike.cuda.random import get_rng_state as get_rng_state
from torchlike.cuda.random import get_rng_state_all as get_rng_state_all
def get_sync_debug_mode() -> builtins.int:
    'The mode as a number.'; ...
from torchlike.cuda.graphs import graph as graph
from torchlike.cuda.graphs import graph_pool_handle as graph_pool_handle
from torchlike.cuda import graphs as graphs
has_half: builtins.bool
has_magma: builtins.bool
from torchlike.cuda.memory import host_memory_stats as host_memory_stats
from torchlike.cuda.memory import host_memory_stats_as_nested_dict as host_memory_stats_as_nested_dict
def init() -> None:
    "Raise torch's error when there is no GPU."; ...
from torchlike.cuda.random import initial_seed as initial_seed
def ipc_collect() -> None:
    'Nothing to collect: no memory is shared between processes.'; ...
from torchlike.cuda._devices import is_available as is_available
from torchlike.cuda._devices import is_bf16_supported as is_bf16_supported
from torchlike.cuda.graphs import is_current_stream_capturing as is_current_stream_capturing
def is_initialized() -> builtins.bool:
    'Whether a GPU is in use: JAX initialises its devices at first sight.'; ...
from torchlike.cuda._devices import is_tf32_supported as is_tf32_supported
from torchlike.cuda.graphs import make_graphed_callables as make_graphed_callables
from torchlike.cuda.random import manual_seed as manual_seed
from torchlike.cuda.random import manual_seed_all as manual_seed_all
from torchlike.cuda.memory import max_memory_allocated as max_memory_allocated
from torchlike.cuda.memory import max_memory_cached as max_memory_cached
from torchlike.cuda.memory import max_memory_reserved as max_memory_reserved
from torchlike.cuda.memory import mem_get_info as mem_get_info
from torchlike.cuda import memory as memory
from torchlike.cuda.memory import memory_allocated as memory_allocated
from torchlike.cuda.memory import memory_cached as memory_cached
from torchlike.cuda.memory import memory_reserved as memory_reserved
from torchlike.cuda.memory import memory_stats as memory_stats
from torchlike.cuda.memory import memory_stats_as_nested_dict as memory_stats_as_nested_dict
from torchlike.cuda.memory import memory_summary as memory_summary
from torchlike.cuda._nvml import memory_usage as memory_usage
from torchlike.cuda import nccl as nccl
from torchlike.cuda._nvml import power_draw as power_draw
from torchlike.cuda import random as random
from torchlike.cuda.memory import reset_max_memory_allocated as reset_max_memory_allocated
from torchlike.cuda.memory import reset_max_memory_cached as reset_max_memory_cached
from torchlike.cuda.memory import reset_peak_memory_stats as reset_peak_memory_stats
from torchlike.cuda.random import seed as seed
from torchlike.cuda.random import seed_all as seed_all
from torchlike.cuda._devices import set_device as set_device
from torchlike.cuda.memory import set_per_process_memory_fraction as set_per_process_memory_fraction
from torchlike.cuda.random import set_rng_state as set_rng_state
from torchlike.cuda.random import set_rng_state_all as set_rng_state_all
from torchlike.cuda.streams import set_stream as set_stream
def set_sync_debug_mode(debug_mode: builtins.int | builtins.str) -> None:
    'What waiting for a GPU shall be answered with: "default" (0), "warn" (1) or "error" (2). Kept; every look at a value waits here.'; ...
from torchlike.cuda.streams import stream as stream
from torchlike.cuda import streams as streams
from torchlike.cuda.streams import synchronize as synchronize
from torchlike.cuda._nvml import temperature as temperature
from torchlike.cuda._nvml import utilization as utilization
