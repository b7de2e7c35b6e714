"""torch.ops._c10d_functional and c10d in two processes, and who sees them; rank 1 prints. The same under torch and torchlike."""
import os

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch.utils._python_dispatch import TorchDispatchMode


def shown(x):
    if isinstance(x, (list, tuple)):
        return f"[{', '.join(map(shown, x))}]"
    return f"tensor{tuple(x.shape)}" if isinstance(x, torch.Tensor) else repr(x) if type(x) in (int, bool, type(None)) else "object"


class Watching(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        if "c10d" in func.namespace and "wait" not in str(func) and "_wrap" not in str(func):
            given = args[:-1] if func.namespace == "c10d" and args[-1] is True else args  # the default
            SHOW("  seen", str(func), shown(given), shown(made))
        return made


def operators(rank, c):
    x = (torch.arange(4.0).reshape(2, 2) + 10 * rank)
    cases = {
        "all_reduce": lambda: c.all_reduce(x, "sum", "0"), "avg": lambda: c.all_reduce(x, "avg", "0"), "max": lambda: c.all_reduce(x, "max", "0"),
        "unknown": lambda: c.all_reduce(x, "SUM", "0"), "no group": lambda: c.all_reduce(x, "sum", "17"), "all_reduce_": lambda: c.all_reduce_(x.clone(), "sum", "0"),
        "coalesced": lambda: c.all_reduce_coalesced([x, x[0]], "sum", "0"), "gather": lambda: c.all_gather_into_tensor(x, 2, "0"),
        "gathers": lambda: c.all_gather_into_tensor_coalesced([x, x[0]], 2, "0"), "out": lambda: c.all_gather_into_tensor_out(x, 2, "0", out=torch.zeros(4, 2)),
        "scatter": lambda: c.reduce_scatter_tensor(x, "sum", 2, "0"), "scatters": lambda: c.reduce_scatter_tensor_coalesced([x, x * 2], "sum", 2, "0"),
        "exchange": lambda: c.all_to_all_single(x, [1, 1], [1, 1], "0"), "uneven": lambda: c.all_to_all_single(x, [[2, 0], [0, 2]][rank], [[2, 0], [0, 2]][rank], "0"),
        "broadcast": lambda: c.broadcast(x, 0, "0"), "broadcast_": lambda: c.broadcast_(x.clone(), 0, "0"),
    }
    for name, call in cases.items():
        try:
            made = call()
            SHOW(name, [c.wait_tensor(t).tolist() for t in (made if isinstance(made, list) else [made])])
        except RuntimeError as error:
            SHOW(name, str(error).splitlines()[0])
    meta = torch.ones(4, 2, device="meta")
    SHOW("meta", [tuple(t.shape) for t in (c.all_gather_into_tensor(meta, 2, "0"), c.reduce_scatter_tensor(meta, "sum", 2, "0"),
                                           c.all_to_all_single(meta, [3, 4], [1, 3], "0"))])
    SHOW([str(getattr(c, name).default._schema) for name in ("all_reduce", "all_gather_into_tensor_out", "wait_tensor")])


def gradients(rank):
    a, c = torch.ops._c10d_functional_autograd, torch.ops._c10d_functional
    x = (torch.arange(4.0).reshape(2, 2) + 10 * rank).requires_grad_()
    for call in (lambda: a.all_gather_into_tensor(x, 2, "0"), lambda: a.reduce_scatter_tensor(x, "sum", 2, "0"), lambda: a.reduce_scatter_tensor(x, "avg", 2, "0"),
                 lambda: a.all_to_all_single(x, [1, 1], [1, 1], "0")):
        x.grad = None
        try:
            made = c.wait_tensor(call())
            (made * torch.arange(1.0, made.numel() + 1).reshape(made.shape) * (rank + 1)).sum().backward()
            SHOW(made.tolist(), made.requires_grad, x.grad.tolist())
        except RuntimeError as error:
            SHOW(str(error))


def seen(rank):
    t, world = torch.ones(2) * (rank + 1), dist.group.WORLD
    parts, line = [torch.zeros(2), torch.zeros(2)], torch.zeros(4)
    x = t.clone()
    calls = {
        "broadcast": lambda: dist.broadcast(x, 0), "all_reduce": lambda: dist.all_reduce(x), "later": lambda: dist.all_reduce(x, async_op=True).wait(),
        "reduce": lambda: dist.reduce(x, 1), "all_gather": lambda: dist.all_gather(parts, x), "into": lambda: dist.all_gather_into_tensor(line, x),
        "gather": lambda: dist.gather(x, parts if rank else None, dst=1), "scatter": lambda: dist.scatter(x, None if rank else [torch.ones(2) * 5, torch.ones(2) * 7]),
        "reduce_scatter": lambda: dist.reduce_scatter(x, [torch.ones(2), torch.ones(2) * 2]), "tensor": lambda: dist.reduce_scatter_tensor(x, torch.arange(4.0)),
        "all_to_all": lambda: dist.all_to_all(parts, [torch.ones(2) * rank, torch.ones(2) * 3]), "single": lambda: dist.all_to_all_single(line, torch.arange(4.0) * (rank + 1)),
        "barrier": dist.barrier, "send": lambda: dist.send(x, 0) if rank else dist.recv(x, 1), "recv": lambda: dist.recv(x, 0) if rank else dist.send(x, 1),
        "functional": lambda: functional.wait_tensor(functional.all_reduce(x, "sum", world)), "rows": lambda: functional.wait_tensor(functional.all_gather_tensor(x, 0, world)),
        "part": lambda: functional.wait_tensor(functional.reduce_scatter_tensor(line, "sum", 0, world)),
        "with gradients": lambda: functional.wait_tensor(functional.all_gather_tensor_autograd(x, 0, world)),
        "exchanged": lambda: functional.wait_tensor(functional.all_to_all_single(x, None, None, world)),
        "around": lambda: functional.wait_tensor(functional.permute_tensor(x, [1, 0], world)),
    }
    with Watching():
        for name, call in calls.items():
            x.copy_(t)
            SHOW(name)
            call()
            if name != "reduce" or rank:
                SHOW("  ", x.tolist(), [p.tolist() for p in parts], line.tolist())


def main():
    global SHOW
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    SHOW = (lambda *what: print(*what, flush=True)) if rank else (lambda *what: None)
    operators(rank, torch.ops._c10d_functional)
    gradients(rank)
    seen(rank)
    c, x = torch.ops.c10d_functional, torch.arange(4.0).reshape(2, 2) + 10 * rank
    SHOW([c.wait_tensor(t).tolist() for t in (c.all_reduce(x, "sum", "", [0, 1], 2), c.all_gather_into_tensor(x, "", [0, 1], 2), c.reduce_scatter_tensor(x, "sum", "", [0, 1], 2))])
    SHOW(str(c.all_to_all_single.default._schema), str(torch.ops.c10d.scatter_.default._schema), os.environ["WORLD_SIZE"])
    dist.destroy_process_group()


main()
