"""Post-local SGD (Lin et al., 2018): after some iterations, gradients are averaged inside small groups only."""
from __future__ import annotations

from typing import Any

from ....futures import Future
from ...process_group import new_subgroups
from .default_hooks import done, mean

__all__ = ["PostLocalSGDState", "post_localSGD_hook"]


class PostLocalSGDState:
    """`start_localSGD_iter`: iterations with the mean over `process_group`; then the mean over `subgroup` (by default one process per
    node), or none at all where `post_local_gradient_allreduce` is off."""

    def __init__(self, process_group: Any, subgroup: Any, start_localSGD_iter: int, post_local_gradient_allreduce: bool = True) -> None:  # noqa: N803
        self.process_group, self.subgroup = process_group, subgroup
        self.start_localSGD_iter, self.post_local_gradient_allreduce = start_localSGD_iter, post_local_gradient_allreduce
        self.iter = 0

    def maybe_increase_iter(self, bucket: Any) -> None:
        """Count an iteration at its last bucket."""
        self.iter += bucket.is_last()


def post_localSGD_hook(state: PostLocalSGDState, bucket: Any) -> Future:  # noqa: N802  (torch's name)
    """The mean over all processes at first, over the subgroup later."""
    local = state.iter >= state.start_localSGD_iter
    state.maybe_increase_iter(bucket)
    if not local:
        return mean(state.process_group, bucket.buffer())
    if not state.post_local_gradient_allreduce:
        return done(bucket.buffer())
    if state.subgroup is None:
        state.subgroup, _ = new_subgroups(1)
    return mean(state.subgroup, bucket.buffer())
