"""Batch norms without running statistics: those are written in place, which functions under `vmap` may not do to what they close over."""
from __future__ import annotations

from ..nn.modules.batchnorm import _BatchNorm
from ..nn.modules.module import Module


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """root, whose batch norms use each batch's own statistics from now on."""
    for module in root.modules():
        if isinstance(module, _BatchNorm):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
