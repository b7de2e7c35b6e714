"""What went wrong at another worker, and the exception that it becomes here."""

from __future__ import annotations

import sys
import traceback
from typing import NamedTuple

from ._worker import WorkerInfo

_NOT_MADE = "Failed to create original exception type. Error msg was {} Original exception on remote side was {}"


class Failure(NamedTuple):
    """A text, and the class of the exception that a function of the program raised; None where the failure is none of its own."""

    text: str
    exception_type: type | None = None

    def _made(self) -> Exception:
        try:
            text = self.text.encode("latin-1", "backslashreplace").decode("unicode_escape")  # the exception's repr has its lines in one
        except UnicodeDecodeError:
            text = self.text
        try:
            return self.exception_type(text)
        except BaseException as error:
            failed = RuntimeError(_NOT_MADE.format(error, text))
            failed.__cause__ = error
            return failed

    def as_value(self) -> Exception:
        """What `to_here()` raises: an exception of the same class."""
        return RuntimeError(self.text) if self.exception_type is None else self._made()

    def as_call(self) -> Exception:
        """What the future of a call raises: ValueError and TypeError keep their class, as in PyTorch; all others are RuntimeErrors."""
        if self.exception_type is None:
            return RuntimeError(self.text)
        made = self._made()
        kind = next((k for k in (ValueError, TypeError) if isinstance(made, k)), RuntimeError)
        return kind(f"{type(made).__name__}: {made}")


def failure_of(error: BaseException) -> Failure:
    return Failure(str(error))


def raised_by(worker: WorkerInfo, error: Exception) -> Failure:
    """A function's exception, shown on stderr of the worker where it happened, too."""
    text = f"On {worker}:\n{error!r}\n{traceback.format_exc()}"
    print(text, file=sys.stderr)
    return Failure(text, type(error))
