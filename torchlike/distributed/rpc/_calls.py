"""Calls of functions of the program, as they are served."""

from __future__ import annotations

import sys
from typing import Any

from ...futures import Future, wait_all
from ._agent import TensorPipeAgent
from ._failure import Failure, failure_of, raised_by
from ._message import Message
from ._references import References

NO_PICKLE = "RuntimeError: Can not pickle torch.futures.Future"
NO_FUTURE = "Functions decorated with @rpc.async_function must return a torch.futures.Future object, but got {}"


def operator(function: Any) -> bool:
    """Whether a function is one of torch itself: in PyTorch those raise their own errors, plainly."""
    return getattr(function, "__module__", None) in ("torch", "torchlike") and getattr(sys.modules["torchlike"], function.__name__, None) is function


class Calls:
    """Runs what others ask this worker to run."""

    def __init__(self, agent: TensorPipeAgent, references: References) -> None:
        self.agent, self.references = agent, references
        agent.handlers.update({"call": self.called, "remote": self.created})
        agent.waiting.update(("call", "remote"))

    def called(self, source: int, message: Message) -> Any:
        """Handler of rpc_sync and rpc_async: the result, the future of it where the function is one that returns that, or a Failure."""
        call = None
        try:
            with self.references.reading() as answers:
                call = message.load()
            wait_all(answers)  # so that the owners of all references know this worker's
            made = call.func(*call.args, **call.kwargs)
        except Exception as error:
            if call is not None and operator(call.func):
                return Failure(str(error))
            return raised_by(self.agent.info, error)
        if not hasattr(call.func, "_wrapped_async_rpc_function"):
            return Failure(NO_PICKLE) if isinstance(made, Future) else made
        if not isinstance(made, Future):
            return Failure(NO_FUTURE.format(f"{type(made).__module__}.{type(made).__qualname__}"))
        return made

    def created(self, source: int, message: Message) -> Any:
        """Handler of remote: the result becomes the value of a reference that the caller has already."""
        ref, fork = message.note
        owned = self.references.at_owner(ref)
        if source != self.agent.info.id:
            self.references.add(owned, fork)

        def give(value: Any) -> None:
            owned.value.set_result(value)
            if source == self.agent.info.id:
                self.references.drop(ref, fork)
        made = self.called(source, message)
        if not isinstance(made, Future):
            give(made)
            return None
        out = Future()

        def finish(done: Future) -> None:
            give(done._value if done._error is None else failure_of(done._error))
            out.set_result(None)
        made.add_done_callback(finish)
        return out
