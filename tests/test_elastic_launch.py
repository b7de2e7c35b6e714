"""torch.distributed.launcher beside real torch: functions and programs in several processes, what they return, and what is said of one that fails."""
import sys
from pathlib import Path

from forked import started

PROGRAM = """
import os
import signal
import sys

import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch


def total(a, b):
    dist.init_process_group("gloo")
    t = torch.tensor([a + dist.get_rank(), b])
    dist.all_reduce(t)
    dist.destroy_process_group()
    return t.tolist(), os.environ["LOCAL_RANK"], os.environ["WORLD_SIZE"], os.environ["TORCHELASTIC_RUN_ID"]


def fails(how):
    if os.environ["RANK"] == "1":
        if how == "raises":
            raise ValueError("no number")
        if how == "ends":
            sys.exit(3)
        os.kill(os.getpid(), signal.SIGKILL)


def second_time():
    if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        raise RuntimeError("not yet")
    return os.environ["TORCHELASTIC_RESTART_COUNT"]


def older_names():  # collectives by their private names, the kinds of reductions by an older one, meshes of groups that are there
    dist.init_process_group("gloo")
    rank, out, part = dist.get_rank(), torch.zeros(4), torch.zeros(2)
    dist._all_gather_base(out, torch.tensor([1.0, 2.0]) + rank)
    dist._reduce_scatter_base(part, out, op=dist.reduce_op.MAX)
    world, lines = dist.group.WORLD, [dist.new_group([r]) for r in (0, 1)]
    mesh = dist.DeviceMesh.from_group(world, "cpu", mesh_dim_names=("data",))
    grid = dist.DeviceMesh.from_group([world, lines[rank]], "cpu", mesh=torch.tensor([[0], [1]]), mesh_dim_names=("data", "model"))
    errors = []
    for given in (dict(group=world, mesh=[1, 0]), dict(group=[world, world]), dict(group=[]), dict(group=[world], mesh=[[0, 1]], mesh_dim_names=("a",))):
        try:
            dist.DeviceMesh.from_group(device_type="cpu", **given)
        except ValueError as e:
            errors.append(str(e))
    place = mesh.get_local_rank(), grid.shape, grid.get_coordinate()
    return (out.tolist(), part.tolist(), dist.reduce_op.SUM == dist.ReduceOp.SUM, mesh.mesh.tolist(), mesh.get_group() is world, *place,
            grid["data"].get_group() is world, grid.get_group("model") is lines[rank], errors)


def config(**more):
    return LaunchConfig(min_nodes=1, max_nodes=1, nproc_per_node=2, run_id="here", rdzv_backend="c10d", rdzv_endpoint="localhost:0", monitor_interval=0.02, start_method="fork",
                        **{"max_restarts": 0, **more})


if __name__ == "__main__":
    print(sorted(elastic_launch(config(), total)(1, 5).items()))
    print(sorted(elastic_launch(config(), sys.executable)("-c", "print(end='')").items()))
    print(sorted(elastic_launch(config(), older_names)().items()))
    print(sorted(elastic_launch(config(max_restarts=1), second_time)().items()))
    for how in ("raises", "ends", "is killed"):
        try:
            elastic_launch(config(), fails)(how)
        except ChildFailedError as e:
            rank, failure = e.get_first_failure()
            said = failure.message if isinstance(failure.message, str) else failure.message["message"]
            print(how, rank, failure.local_rank, failure.exitcode, failure.signal_name(), said.replace(str(failure.pid), "PID"), e.name, "FAILED" in str(e))
    made = config()
    print(made.rdzv_configs, made.shutdown_timeout, made.role)
    try:
        config(shutdown_timeout=-1)
    except ValueError as e:
        print(e)
"""


def test_processes(tmp_path):
    path = Path(tmp_path) / "program.py"
    path.write_text(PROGRAM)
    theirs, ours = (started(*launcher, path).stdout.splitlines() for launcher in ((), ("-m", "torchlike.run")))
    assert len(theirs) == 9
    assert ours == theirs


def test_fresh_interpreters(tmp_path):
    """`spawn`, as most programs start functions."""
    path = Path(tmp_path) / "program.py"
    path.write_text(PROGRAM.partition("if __name__")[0] + 'if __name__ == "__main__":\n    made = config()\n    made.start_method = "spawn"\n'
                    '    print(sorted(elastic_launch(made, total)(1, 5).items()))\n')
    text = started("-m", "torchlike.run", path).stdout
    assert text.strip() == "[(0, ([3, 10], '0', '2', 'here')), (1, ([3, 10], '1', '2', 'here'))]", (text, sys.version)
