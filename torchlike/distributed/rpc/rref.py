"""RRef: a reference to a value that lives at one worker, its owner, and can be handed on to any other."""

from __future__ import annotations

import functools
from typing import Any

from ..._tensor import Tensor
from ...futures import Future
from ..autograd import _pass
from ._agent import agent
from ._failure import Failure
from ._references import Fork, GloballyUniqueId, Owned, References
from ._worker import WorkerInfo
from .constants import UNSET_RPC_TIMEOUT
from .internal import _internal_rpc_pickler

NOT_CREATED = "RRef creation via rpc.remote() timed out, and it is possible that the RRef on the owner node does not exist."
NO_PICKLE = "Can not pickle rref in python pickler, rref can only be pickled when using RPC"
references: list[References] = []  # those of this process, once it has an agent


class PyRRef:
    """What `remote()` returns and what comes in messages; `RRef(value)` makes one of a value of this worker."""

    def __init__(self, value: Any, type_hint: Any = None) -> None:
        owner = agent().info
        if type_hint is not None:
            raise RuntimeError("type_hint should only be specified when the RRef being created contains a ScriptModule.")
        owned = Owned(references[0].number())
        owned.value.set_result(value)
        self._fill(owner, owned.ref, owned, None)

    def _fill(self, owner: WorkerInfo, ref: GloballyUniqueId, owned: Owned | None, fork: GloballyUniqueId | None) -> PyRRef:
        self._owner, self._ref, self._owned, self._fork = owner, ref, owned, fork
        self._home = references[0]
        self._confirmed, self._deleted = owned is not None, False
        self._created: Future | None = None  # the answer of remote()
        self._timed_out: str | None = None
        self._kinds: dict[bool, Any] = {}
        if owned is None:
            self._home.users[fork] = self
        return self

    @classmethod
    def _owning(cls, owned: Owned) -> PyRRef:
        return cls.__new__(cls)._fill(agent().info, owned.ref, owned, None)

    @classmethod
    def _using(cls, owner: WorkerInfo, ref: GloballyUniqueId, fork: GloballyUniqueId) -> PyRRef:
        return cls.__new__(cls)._fill(owner, ref, None, fork)

    def __del__(self) -> None:
        if getattr(self, "_fork", None) is not None and not self._deleted:
            self._home.gone(self._owner.id, self._ref, self._fork)

    def _confirm(self, error: Exception | None) -> None:
        """The owner knows this user, or the call that makes its value failed to arrive."""
        self._confirmed = error is None
        if error is not None:
            self._timed_out = str(error)

    # handing on

    def _serialize(self) -> tuple:
        """A fork of this reference, as a tuple that `_deserialize` takes at another worker."""
        if self._deleted:
            raise RuntimeError(f"{self._user()} has been deleted. Cannot call fork an UserRRef after deletion.")
        return tuple(self._home.sent(self))

    @staticmethod
    def _deserialize(data: tuple) -> PyRRef:
        given, here = Fork(*data), references[0]
        if given.owner == here.me:
            return PyRRef._owning(here.at_owner_again(given))
        made = PyRRef._using(agent().get_worker_info(given.owner), given.ref, given.fork)
        here.announce(made, given)
        return made

    def __reduce_ex__(self, protocol: int) -> Any:
        raise RuntimeError(NO_PICKLE)

    # questions

    def is_owner(self) -> bool:
        """Whether the value lives in this process."""
        return self._owned is not None

    def confirmed_by_owner(self) -> bool:
        """Whether the owner knows of this reference."""
        return self._confirmed

    def owner(self) -> WorkerInfo:
        return self._owner

    def owner_name(self) -> str:
        return self._owner.name

    def _user(self) -> str:
        return f"UserRRef(rref_id={self._ref}, fork_id={self._fork})"

    def _check(self, what: str) -> None:
        """RuntimeError where there is no value to ask for any more."""
        if self._deleted:
            raise RuntimeError(f"{self._user()} has been deleted. Cannot call {what}() on it after deletion.")
        if self._timed_out is not None:
            raise RuntimeError(NOT_CREATED if "set timeout" in self._timed_out else self._timed_out)

    def _value(self) -> Any:
        agent()
        made = self._owned.value.wait()
        if isinstance(made, Failure):
            raise made.as_value()
        return made

    def to_here(self, timeout: float = UNSET_RPC_TIMEOUT) -> Any:
        """The value, copied from the owner (at the owner itself: the value itself) once it is there. Raises what the call raised that should
        have made it, and RuntimeError after `timeout` seconds."""
        if self._owned is not None:
            return self._value()
        self._check("to_here")
        found = agent().request(self._owner.id, "fetch", self._ref, timeout, raised=Failure.as_value, tracked=True).wait()
        self._confirmed = self._confirmed or self._created is not None  # the call has arrived, though its own answer may still be on its way
        return found

    def local_value(self) -> Any:
        """The value, at its owner; RuntimeError elsewhere."""
        if self._owned is None:
            raise RuntimeError(f"For {self._user()}, can't call localValue() on user {agent().info}. Call it on owner {self._owner}")
        return self._value()

    def _get_future(self) -> Future | None:
        """The answer to the call that makes the value; None for one that did not come from `remote()` here."""
        return self._created

    def _get_type(self, timeout: float = UNSET_RPC_TIMEOUT, blocking: bool = True) -> Any:
        """The value's class, or the future of it."""
        if blocking not in self._kinds:
            if self._owned is not None:
                made = type(self.local_value())
                if not blocking:
                    future = Future()
                    future.set_result(made)
                    made = future
            else:
                self._check("_get_type")
                asked = functools.partial(agent().request, self._owner.id, "type", self._ref, timeout, raised=Failure.as_value)
                made = asked().wait() if blocking else asked()
            self._kinds[blocking] = made
        return self._kinds[blocking]

    # calls

    def _proxy(self, call: str, timeout: float) -> Any:
        from . import api, rref_proxy
        return rref_proxy.RRefProxy(self, getattr(api, call), timeout)

    def rpc_sync(self, timeout: float = UNSET_RPC_TIMEOUT) -> Any:
        """`rref.rpc_sync().method(...)` runs a method of the value at its owner: the result."""
        return self._proxy("rpc_sync", timeout)

    def rpc_async(self, timeout: float = UNSET_RPC_TIMEOUT) -> Any:
        """`rref.rpc_async().method(...)` runs a method of the value at its owner: the future of the result."""
        return self._proxy("rpc_async", timeout)

    def remote(self, timeout: float = UNSET_RPC_TIMEOUT) -> Any:
        """`rref.remote().method(...)` runs a method of the value at its owner: a reference to the result."""
        return self._proxy("remote", timeout)

    def backward(self, dist_autograd_ctx_id: int = -1, retain_graph: bool = False) -> None:
        """The backward pass of the value, a scalar: of distributed autograd in the context of that number, which must be given away from the
        owner; there, without one, an ordinary backward."""
        if self._owned is None:
            if dist_autograd_ctx_id == -1:
                raise RuntimeError("User RRefs require 'dist_autograd_ctx_id' to be specified")
            agent().request(self._owner.id, "backward", (self._ref, dist_autograd_ctx_id, retain_graph)).wait()
            return
        value = self._value()
        if not isinstance(value, Tensor):
            raise RuntimeError("RRef should contain a tensor for .backward()")
        if dist_autograd_ctx_id == -1:
            value.backward(retain_graph=retain_graph)
        else:
            _pass.backward(dist_autograd_ctx_id, [value], retain_graph)

    def __str__(self) -> str:
        if self._owned is not None:
            return f"OwnerRRef({self._ref})"
        return f"UserRRef(RRefId = {self._ref}, ForkId = {self._fork})"

    __repr__ = __str__


_internal_rpc_pickler._register_reducer(PyRRef, lambda rref: (PyRRef._deserialize, (rref._serialize(),)))


def serve(here: References) -> None:
    """Answer what users ask about the values of this worker."""
    def fetch(source: int, message: Any) -> Future:
        return here.at_owner(message.load()).value

    def kind(source: int, message: Any) -> Future:
        out = Future()
        fetch(source, message).add_done_callback(lambda done: out.set_result(done._value if isinstance(done._value, Failure) else type(done._value)))
        return out

    def backward(source: int, message: Any) -> None:
        ref, context_id, retain_graph = message.load()
        PyRRef._owning(here.at_owner(ref)).backward(context_id, retain_graph)
    here.agent.handlers.update({"fetch": fetch, "type": kind, "backward": backward})
    here.agent.waiting.add("backward")
