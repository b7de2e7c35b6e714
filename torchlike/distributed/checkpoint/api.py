"""torch.distributed.checkpoint.api: what failed on which rank."""
from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

__all__ = ["CheckpointException"]


class CheckpointException(BaseException):
    """Saving or loading failed; `failures` has the exception and the lines it came from by rank."""

    def __init__(self, msg: str, failures: dict[int, tuple[BaseException, traceback.StackSummary]]) -> None:
        super().__init__(msg, failures)
        self._failures = failures

    @property
    def failures(self) -> dict[int, tuple[BaseException, traceback.StackSummary]]:
        """By rank."""
        return self._failures

    def __str__(self) -> str:
        text = f"CheckpointException ranks:{self._failures.keys()}\n"
        for rank, (error, lines) in self._failures.items():
            text += f"Traceback (most recent call last): (RANK {rank})\n"
            text += "".join(traceback.format_list(lines)) + "".join(traceback.format_exception_only(type(error), error))
        return text


def on_this_rank(step: str, function: Callable, *args: Any) -> Any:
    """function(*args); what it raises becomes a CheckpointException, as on several ranks."""
    try:
        return function(*args)
    except BaseException as error:
        raise CheckpointException(step, {0: (error, traceback.extract_tb(error.__traceback__))}) from error
