"""`from torch.x import *`: what programs get by it, against real torch."""
from importlib import import_module
from types import ModuleType

import pytest

MODULES = """autograd optim distributions nn.init nn.parameter autograd.functional autograd.graph func jit overrides amp profiler optim.lr_scheduler export
autograd.forward_ad autograd.gradcheck autograd.profiler autograd.function autograd.grad_mode autograd.anomaly_mode cpu accelerator nn.functional
utils._pytree futures hub linalg special""".split()


def _names(package, module):
    scope = {}
    exec(f"from {package}.{module} import *" if module else f"from {package} import *", scope)
    return {n: x for n, x in scope.items() if n != "__builtins__"}


@pytest.mark.parametrize("module", MODULES)
def test_module(module):
    """As many of torch's names as there are here, and no others where torch has a list."""
    want, got = _names("torch", module), _names("torchlike", module)
    here = {n for n in want if hasattr(import_module(f"torchlike.{module}"), n) and not isinstance(want[n], ModuleType)}
    assert here <= set(got)
    assert not hasattr(import_module(f"torch.{module}"), "__all__") or set(got) <= set(want)


def test_torch():
    """No modules: a program's own `random`, `types` and `utils` stay."""
    want, got = _names("torch", ""), _names("torchlike", "")
    assert not [n for n, x in got.items() if isinstance(x, ModuleType)]
    import torchlike
    assert {n for n in want if n in vars(torchlike) and not isinstance(vars(torchlike)[n], ModuleType)} <= set(got)
