"""Remote references: values that stay at their owner, and how the owner knows who still holds one.

Each reference that leaves a worker (a fork) has a number of its own, and the owner keeps the value as long as it knows of a fork. A user
that hands its reference on keeps it until the owner has heard of the new fork, so the owner never counts too few.
"""

from __future__ import annotations

import contextlib
import threading
import time
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ...futures import Future

if TYPE_CHECKING:
    from ._agent import TensorPipeAgent
    from .rref import PyRRef


_PATIENCE = 5.0  # seconds that the end waits for owners which do not answer


class GloballyUniqueId(NamedTuple):
    """The number of a reference or of a fork, and the worker that gave it."""

    created_on: int
    local_id: int

    def __repr__(self) -> str:
        return f"GloballyUniqueId(created_on={self.created_on}, local_id={self.local_id})"


class Fork(NamedTuple):
    """A reference on its way: whose it is, its own number, and by whom it was handed on."""

    owner: int
    ref: GloballyUniqueId
    fork: GloballyUniqueId
    parent: int


class Owned:
    """A value at its owner, once it is there, and the forks that others hold."""

    def __init__(self, ref: GloballyUniqueId) -> None:
        self.ref, self.value, self.forks = ref, Future(), set()


class _Arriving(threading.local):
    pending: list[Future] | None = None  # answers of owners about references in the message that this thread reads


class References:
    """The references that one worker owns or holds."""

    def __init__(self, agent: TensorPipeAgent) -> None:
        self.agent, self.me = agent, agent.info.id
        self.lock, self.numbers = threading.RLock(), 0
        self.owned: dict[GloballyUniqueId, Owned] = {}
        self.users: weakref.WeakValueDictionary[GloballyUniqueId, PyRRef] = weakref.WeakValueDictionary()
        self.pending: dict[GloballyUniqueId, PyRRef] = {}  # users that their owner does not know yet
        self.children: dict[GloballyUniqueId, PyRRef] = {}  # by a fork that its owner does not know yet: whom it was made from
        self.arriving = _Arriving()
        agent.handlers.update({"fork": self._forked, "accepted": self._accepted, "delete": self._deleted})

    def number(self) -> GloballyUniqueId:
        with self.lock:
            self.numbers += 1
            return GloballyUniqueId(self.me, self.numbers - 1)

    def at_owner(self, ref: GloballyUniqueId) -> Owned:
        """What this worker owns under a number; word of it may come before its value does."""
        with self.lock:
            found = self.owned.get(ref)
            if found is None:
                found = self.owned[ref] = Owned(ref)
            return found

    def add(self, owned: Owned, fork: GloballyUniqueId) -> None:
        with self.lock:
            self.owned[owned.ref] = owned
            owned.forks.add(fork)

    def drop(self, ref: GloballyUniqueId, fork: GloballyUniqueId) -> None:
        """A fork is gone; with the last one, this worker keeps the value only where its own program does."""
        with self.lock:
            owned = self.owned.get(ref)
            if owned is not None:
                owned.forks.discard(fork)
                if not owned.forks:
                    del self.owned[ref]

    # users

    def wait_for(self, user: PyRRef, answer: Future) -> None:
        """Keep a user until its owner has answered that it knows it."""
        with self.lock:
            self.pending[user._fork] = user
        fork = user._fork

        def known(done: Future) -> None:
            with self.lock:
                user = self.pending.pop(fork, None)
            if user is not None:
                user._confirm(done._error)
        answer.add_done_callback(known)

    def gone(self, owner: int, ref: GloballyUniqueId, fork: GloballyUniqueId) -> None:
        """A user is garbage: tell its owner, from another thread, as this may happen anywhere."""
        def tell() -> None:
            with contextlib.suppress(RuntimeError):  # the owner is gone, or this worker's agent
                self.agent.request(owner, "delete", (ref, fork))
        if not self.agent.closed:
            with contextlib.suppress(RuntimeError):  # the interpreter ends, and begins no thread
                self.agent.system.run(tell)

    # references in messages

    def sent(self, rref: PyRRef) -> Fork:
        """A fork of a reference, for a message."""
        fork = self.number()
        if rref._owned is not None:
            self.add(rref._owned, fork)
        else:
            with self.lock:
                self.children[fork] = rref
        return Fork(rref._owner.id, rref._ref, fork, self.me)

    @contextlib.contextmanager
    def reading(self) -> Iterator[list[Future]]:
        """A message is read: the answers to wait for until all its references are known to their owners."""
        before, self.arriving.pending = self.arriving.pending, []
        try:
            yield self.arriving.pending
        finally:
            self.arriving.pending = before

    def at_owner_again(self, given: Fork) -> Owned:
        """A fork came back to the owner: the value itself."""
        owned = self.at_owner(given.ref)
        if given.parent == self.me:
            self.drop(given.ref, given.fork)
        else:
            self.agent.request(given.parent, "accepted", given.fork)
        return owned

    def announce(self, user: PyRRef, given: Fork) -> None:
        """A user was made of a fork that came in a message; its owner knows it if that is who sent it."""
        if given.parent == given.owner:
            user._confirm(None)
            return
        answer = self.agent.request(given.owner, "fork", (given.ref, given.fork))
        if self.arriving.pending is not None:
            self.arriving.pending.append(answer)
        self.wait_for(user, answer)

        def accepted(done: Future) -> None:
            if done._error is None:
                self.agent.request(given.parent, "accepted", given.fork)
        answer.add_done_callback(accepted)

    def _forked(self, source: int, message: Any) -> None:
        ref, fork = message.load()
        self.add(self.at_owner(ref), fork)

    def _accepted(self, source: int, message: Any) -> None:
        with self.lock:
            self.children.pop(message.load(), None)

    def _deleted(self, source: int, message: Any) -> None:
        self.drop(*message.load())

    # the end

    def delete_users(self) -> None:
        """Give up every reference to a value of another worker, and wait until the owners know."""
        end = time.monotonic() + _PATIENCE
        while self.pending and time.monotonic() < end:
            with self.agent.changed:
                self.agent.changed.wait(0.01)
        with self.lock:
            users = [u for u in list(self.users.values()) if not u._deleted]
        answers = []
        for user in users:
            user._deleted = True
            with contextlib.suppress(RuntimeError):
                answers.append(self.agent.request(user._owner.id, "delete", (user._ref, user._fork)))
        for answer in answers:
            with contextlib.suppress(RuntimeError):
                answer.wait()

    def leaks(self) -> list[GloballyUniqueId]:
        with self.lock:
            return [ref for ref, owned in self.owned.items() if owned.forks]

    def debug_info(self) -> dict[str, str]:
        with self.lock:
            return {"num_pending_users": str(len(self.pending)), "num_forks": str(sum(len(o.forks) for o in self.owned.values())),
                    "num_pending_futures": str(sum(not o.value.done() for o in self.owned.values())), "num_owner_rrefs": str(len(self.owned))}
