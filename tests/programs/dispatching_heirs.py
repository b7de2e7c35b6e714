"""A class that takes functions over, made before any has `__torch_dispatch__`; one below it has, and its numbers are asked for."""
import torch
from torch.utils._pytree import tree_map

log = []


class Functions(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))


class Wrapper(Functions):
    @staticmethod
    def __new__(cls, inner):
        made = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        log.append(str(func))
        args, kwargs = tree_map(lambda x: x.inner if isinstance(x, Wrapper) else x, (args, kwargs or {}))
        return tree_map(lambda x: Wrapper(x) if isinstance(x, torch.Tensor) else x, func(*args, **kwargs))


x = Wrapper(torch.tensor([1.5]))
for ask in (bool, float, int, torch.Tensor.item, torch.is_nonzero, lambda t: [5, 6][t.to(torch.int64)], lambda t: bool((t > 2).any())):
    log.clear()
    print(ask(x), log)
for wrong in (lambda: bool(Wrapper(torch.ones(2))), x.tolist):
    try:
        wrong()
    except RuntimeError as e:
        print(e)
