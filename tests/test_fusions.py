"""How much code XLA makes of elementwise operations: kernels have copies of what leads to them."""
from __future__ import annotations

import itertools

import pytest

import torchlike
from torchlike._core import costs, fusions, program, program_info

N = 60
sizes = itertools.count(17)  # of each program its own


def _info(f) -> program_info.ProgramInfo:
    x = torchlike.rand(next(sizes))
    x.sum().item()
    with program.immediate(False), program.tier("numpy"):
        for _ in range(2):
            kept = f(x)
            program.flush("test")
    del kept
    info = next(i for i in reversed(program_info.infos) if len(i.steps) == N)
    info.lives.update(*info.hosts)
    return info


def _chain(every: int, joins: bool):
    def f(x):
        y, kept = x, []
        for i in range(N):
            y = y + x if joins else y * 1.5
            if i % every == every - 1:
                kept.append(y)
        return kept
    return f


@pytest.mark.parametrize(("every", "joins", "emitted"), [(N, False, N), (N, True, N), (1, False, N * (N + 1) // 2), (N // 4, False, N // 4 * 10), (1, True, N)])
def test_a_kernel_has_a_copy_of_what_leads_to_its_result(every, joins, emitted):
    """But for sums that are written anyway: reading one is less work than reading both terms."""
    info = _info(_chain(every, joins))
    assert fusions.emitted(info.steps, info.lives) == emitted


def test_copies_take_time_to_compile():
    alone, copied = (_info(_chain(every, False)).compile_seconds for every in (N, 1))
    assert copied - alone == pytest.approx(costs.SECONDS_PER_COPY * (N * (N + 1) // 2 - N))


def test_dear_operations_are_not_made_again():
    infos = [_info(lambda x, f=f: [y * i for y in [f(x)] for i in range(N - 1)]) for f in (torchlike.exp, torchlike.neg)]
    assert [fusions.emitted(i.steps, i.lives) for i in infos] == [N, 2 * (N - 1)]


def test_a_loop_whose_code_is_large_is_compiled_late():
    """A recurrent cell's backward, unrolled: its gates' gradients have copies of those of all later steps."""
    cell = torchlike.nn.LSTMCell(4, 8)

    def step(n: int) -> None:
        h, c = torchlike.zeros(3, 8), torchlike.zeros(3, 8)
        for _ in range(n):
            h, c = cell(torchlike.ones(3, 4), (h, c))
        h.sum().backward()
        cell.weight_ih.grad.sum().item()
        cell.zero_grad()
    seconds, start = [], program_info.clock.now
    for n in (10, 40):
        with program.immediate(False), program.tier("numpy"):
            for _ in range(3):
                step(n)
        seconds.append(max(i.compile_seconds for i in program_info.infos if i.last_seen > start and len(i.steps) > 15 * n))
    assert seconds[1] - costs.PROGRAM_COMPILE > 8 * (seconds[0] - costs.PROGRAM_COMPILE)
