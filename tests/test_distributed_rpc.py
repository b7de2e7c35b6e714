"""torch.distributed.rpc: the same programs under real torch and torchlike over three workers, and what is torchlike's own."""
import subprocess
import sys
from pathlib import Path

from forked import ROOT, printed

PROGRAMS = Path(__file__).resolve().parent / "programs"
MODULES = "torch.distributed.rpc,torch.distributed.nn.api.remote_module,torch.distributed.optim,torch._dynamo"


def test_the_same_over_workers(subject, oracle, tmp_path):
    """Calls and references; gradients through them, optimizers and modules of other workers; three trainings."""
    programs = [(PROGRAMS / f"{name}.py", 3) for name in ("remote_calls", "remote_gradients", "remote_training")]
    real, ours = (printed(torch, tmp_path, MODULES, programs) for torch in (oracle, subject))
    for (path, _), expected, found in zip(programs, real, ours, strict=True):
        assert found == expected and len(expected) > 5, path.name


# where torch waits for ever (messages of a context that no root depends on), and where it keeps references that a proxy's exception held
GRADIENTS = """import os, time
import torchlike as torch
from torchlike.distributed import autograd, rpc
from torchlike.distributed.optim import DistributedOptimizer
rank = int(os.environ["RANK"])
def product(x, y): return x * y
def fails(x): raise KeyError("k")
def owned(): return int(rpc._rref_context_get_debug_info()["num_owner_rrefs"])
def sums(x): return [x.to_dense().sum().item(), x.layout]
rpc.init_rpc(f"worker{rank}", rank=rank, world_size=3)
if rank == 0:
    a, b = torch.tensor([2.0], requires_grad=True), torch.tensor([5.0], requires_grad=True)
    with autograd.context() as context:
        unused, used = rpc.rpc_sync("worker1", product, args=(a, b)), rpc.rpc_sync("worker1", product, args=(a, a))
        autograd.backward(context, [used])
        print(autograd.get_gradients(context)[a].tolist(), b in autograd.get_gradients(context))
        autograd.backward(context, [unused])
        print(autograd.get_gradients(context)[a].tolist(), autograd.get_gradients(context)[b].tolist(), autograd._get_debug_info())
    print(autograd._get_debug_info())
    with autograd.context() as context:
        lost = rpc.rpc_sync("worker1", product, args=(a, b))
        try:
            lost.backward()
        except RuntimeError as error:
            print(error)
    refs = [rpc.remote(k, product, args=(a, k)) for k in range(3)]
    failed = [refs[1].rpc_async(), refs[1].rpc_sync(), rpc.remote("worker2", fails, args=(refs[1],))]
    for ask in (lambda: failed[0].nothing().wait(), lambda: failed[1].view(7), lambda: failed[2].to_here()):
        try:
            ask()
        except Exception as error:
            print(type(error).__name__)
    print(isinstance(refs[1], torch._C._distributed_rpc.PyRRef), isinstance(a, torch._C._distributed_rpc.PyRRef), torch._C._distributed_rpc._is_current_rpc_agent_set())
    try:
        DistributedOptimizer(torch.optim.SGD, refs[:1], lr=-1.0)
    except ValueError as error:
        print("Invalid learning rate: -1.0" in str(error))
    print(rpc.rpc_sync("worker1", sums, args=(torch.eye(3).to_sparse(),)))
    del refs, failed, ask
    for _ in range(200):
        if not any(left := [rpc.rpc_sync(k, owned) for k in range(3)]):
            break
        time.sleep(0.05)
    print(left)
rpc.shutdown()
"""

# calls that go on from worker to worker after all of them called shutdown(); every one is answered
CHAIN = """import os, threading, time
import torchlike as torch
from torchlike.distributed import rpc
rank, seen = int(os.environ["RANK"]), []
def go_on(left):
    seen.append(left)
    if left:
        rpc.rpc_async((rank + 1) % 3, go_on, args=(left - 1,)).then(lambda done: seen.append(-left))
rpc.init_rpc(f"worker{rank}", rank=rank, world_size=3, rpc_backend_options=rpc.TensorPipeRpcBackendOptions(num_worker_threads=2))
if rank == 0:
    rpc.rpc_async(1, go_on, args=(30,))
rpc.shutdown()
assert sorted(seen) == sorted([k for k in range(31) if (31 - k) % 3 == rank] + [-k for k in range(1, 31) if (31 - k) % 3 == rank]), seen
rpc.init_rpc(f"again{rank}", rank=rank, world_size=3)
if rank == 0:
    print([rpc.rpc_sync(k, rpc.get_worker_info) for k in range(3)])
rpc.shutdown()
end = time.monotonic() + 10
while (left := [t.name for t in threading.enumerate() if t.name.startswith("torchlike rpc")]) and time.monotonic() < end:
    time.sleep(0.01)
assert not left, left
"""

ENDED = """import os
import torchlike as torch
from torchlike.distributed import rpc
rank = int(os.environ["RANK"])
rpc.init_rpc(f"worker{rank}", rank=rank, world_size=3)
if rank == 0:
    for ask in (lambda: rpc.rpc_async("worker2", os._exit, args=(0,)).wait(), lambda: rpc.rpc_sync("worker2", torch.ones, args=(2,))):
        try:
            ask()
        except RuntimeError as error:
            print(error)
try:
    rpc.shutdown()
except RuntimeError as error:
    if rank == 0:
        print("is gone" in str(error))
"""

NAMES = """import os
from torchlike.distributed import rpc
rank = int(os.environ["RANK"])
try:
    rpc.init_rpc("same", rank=rank, world_size=3)
except RuntimeError as error:
    if rank == 0:
        print(error)
"""

# workers that come and go; a store tells when
DYNAMIC = """import os
import torchlike as torch
from torchlike.distributed import TCPStore, rpc
rank = int(os.environ["RANK"])
store = TCPStore("127.0.0.1", int(os.environ["MASTER_PORT"]))
for k in range(rank):
    store.get(f"here{k}")
rpc.init_rpc(f"worker{rank}", rank=rank)
store.set(f"here{rank}", "")
if rank == 0:
    store.get("here2")
    print(sorted(w.name for w in rpc.api._get_current_rpc_agent().get_worker_infos()))
    print(rpc.rpc_sync("worker2", torch.ones, args=(2,)), rpc.remote(1, rpc.get_worker_info).to_here())
    store.set("go1", "")
    store.get("gone1")
    print(sorted(w.name for w in rpc.api._get_current_rpc_agent().get_worker_infos()))
    store.set("go2", "")
    store.get("gone2")
else:
    assert rpc.rpc_sync("worker0", rpc.get_worker_info).name == "worker0"
    store.get(f"go{rank}")
rpc.shutdown()
store.set(f"gone{rank}", "")
"""


def test_ours_alone_over_workers(subject, tmp_path):
    programs = {
        "gradients": (GRADIENTS, ["[4.0] False", "[9.0] [2.0] {'num_autograd_contexts': 1, 'num_current_backward_passes': 0}",
                                  "{'num_autograd_contexts': 0, 'num_current_backward_passes': 0}",
                                  "Gradients of tensors that another worker sent are those of torch.distributed.autograd.backward(context_id, roots).",
                                  "AttributeError", "RuntimeError", "KeyError", "True False True", "True", "[3.0, torch.sparse_coo]", "[0, 0, 0]"]),
        "chain": (CHAIN, ["[WorkerInfo(id=0, name=again0), WorkerInfo(id=1, name=again1), WorkerInfo(id=2, name=again2)]"]),
        "ended": (ENDED, ["the connection to worker 2 ended before it answered", "RPC to WorkerInfo(id=2, name=worker2) failed: it is gone",
                          "True"]),
        "names": (NAMES, ["RPC worker name same is not unique. Workers 0 and 1 share the same name."]),
        "dynamic": (DYNAMIC, ["['worker0', 'worker1', 'worker2']", "tensor([1., 1.]) WorkerInfo(id=1, name=worker1)", "['worker0', 'worker2']"]),
    }
    for name, (text, _) in programs.items():
        (tmp_path / f"{name}.py").write_text(text)
    found_lines = printed(subject, tmp_path, MODULES, [(tmp_path / f"{name}.py", 3) for name in programs])
    for (name, (_, expected)), found in zip(programs.items(), found_lines, strict=True):
        assert found == expected, name


def test_it_is_loaded_only_when_a_program_asks_for_it():
    text = """
import sys
import torchlike as torch
import torchlike.distributed, torchlike.distributed.nn, torchlike.distributed.optim
assert not torch._C._distributed_rpc._is_current_rpc_agent_set() and not isinstance(3, torch._C._distributed_rpc.PyRRef)
assert not [m for m in sys.modules if m.startswith(("torchlike.distributed.rpc", "torchlike.distributed.autograd"))]
assert torch.distributed.rpc.is_available() and torch.distributed.autograd.is_available()
from torchlike.distributed.nn import RemoteModule
from torchlike.distributed.optim import DistributedOptimizer
"""
    subprocess.run([sys.executable, "-c", text], check=True, timeout=120, env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"})
