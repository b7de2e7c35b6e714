"""torch.distributed.optim in processes of its own, under real torch and torchlike."""
from pathlib import Path

from forked import printed

PROGRAM = Path(__file__).resolve().parent / "programs" / "sharded_optimizer.py"


def test_an_optimizer_divided_between_processes(subject, oracle, tmp_path):
    real, ours = (printed(torch, tmp_path, "torch.distributed.optim", [(PROGRAM, 2), (PROGRAM, 1)]) for torch in (oracle, subject))
    for expected, found in zip(real, ours, strict=True):
        assert found == expected and len(expected) > 15
