"""Questions about the state of PyTorch's tracers, of which torchlike has the mode that makes fake tensors."""
from __future__ import annotations

import sys
from typing import Any


def _loaded() -> Any:
    """The module of fake tensors, if a program has loaded it: else there are none."""
    return sys.modules.get(f"{__package__}._subclasses.fake_tensor")


def active_fake_mode() -> Any:
    """The mode that makes fake tensors, if one is on."""
    fake = _loaded()
    if fake is None:
        return None
    from . import _leaves
    return next((m for m in reversed(_leaves.state.stack) if isinstance(m, fake.FakeTensorMode)), None)


def detect_fake_mode(inputs: Any = None) -> Any:
    """The mode that is on, else that of the fake tensors among the inputs; None where there is none, AssertionError where these are of several."""
    fake, found = _loaded(), active_fake_mode()
    if fake is None or found is not None:
        return found
    from .utils._pytree import tree_leaves
    modes = [x.fake_mode for x in tree_leaves(inputs) if isinstance(x, fake.FakeTensor)]
    for m in modes:
        if m is not modes[0]:
            raise AssertionError(f"fake mode ({modes[0]}) from fake tensor input 0 doesn't match mode ({m}) from another")
    return modes[0] if modes else None
