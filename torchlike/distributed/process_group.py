"""Process groups: how the processes of a program find each other, and the questions about ranks."""

from __future__ import annotations

import concurrent.futures
import contextlib
import enum
import itertools
import os
import warnings
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, ClassVar

import numpy as np

from . import constants
from .rendezvous import rendezvous
from .store import PrefixStore, Store
from .transport import Transport
from .work import Receiving

_BACKENDS = ("gloo", "nccl", "mpi", "ucc", "xccl", "cpu:gloo,cuda:nccl")
_NOT_INITIALIZED = "Default process group has not been initialized, please make sure to call init_process_group."


class Backend(str):
    """The name of a backend, in lower case. All of them send over sockets here."""

    GLOO, NCCL, MPI, UCC, XCCL, UNDEFINED = "gloo", "nccl", "mpi", "ucc", "xccl", "undefined"
    default_device_backend_map: ClassVar[dict[str, str]] = {"cpu": GLOO, "cuda": NCCL, "xpu": XCCL, "mps": GLOO}
    backend_list: ClassVar[list[str]] = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI]
    backend_capability: ClassVar[dict[str, list[str]]] = {GLOO: ["cpu", "cuda"], NCCL: ["cuda"], XCCL: ["xpu"], UCC: ["cpu", "cuda"], MPI: ["cpu", "cuda"]}

    def __new__(cls, name: str) -> Backend:
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        return super().__new__(cls, name.lower())


class _ReduceOps(type):
    """A kind of reduction passes for a reduction."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return type(instance) in (cls, cls.RedOpType)


class ReduceOp(metaclass=_ReduceOps):
    """How all_reduce and its kin combine the ranks' tensors.

    `ReduceOp.SUM` and the others are of the kind `ReduceOp.RedOpType`, and `ReduceOp(ReduceOp.SUM)` equals it.
    """

    class RedOpType(enum.IntEnum):
        SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM = range(9)
        __str__ = enum.Enum.__str__

        def __repr__(self) -> str:
            return f"<{self}: {self.value}>"

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM = RedOpType

    def __init__(self, op: RedOpType) -> None:
        if type(op) is not ReduceOp.RedOpType:
            raise TypeError(f"ReduceOp() takes a ReduceOp.RedOpType, not {op!r}")
        self.op = op

    def __eq__(self, other: Any) -> bool:
        return self.op == getattr(other, "op", other)

    def __hash__(self) -> int:
        return hash(self.op)


class _ReduceOp:
    """The kinds of ReduceOp by an older name, which warns where it is asked."""

    def __getattribute__(self, name: str) -> Any:
        if name[:1] != "_":
            warnings.warn("`torch.distributed.reduce_op` is deprecated, please use `torch.distributed.ReduceOp` instead", FutureWarning, stacklevel=2)
            return getattr(ReduceOp.RedOpType, name)
        return object.__getattribute__(self, name)


reduce_op = _ReduceOp()


class ProcessGroup:
    """Some ranks of the world, this process among them."""

    def __init__(self, backend: Backend, ranks: Sequence[int], transport: Transport, number: int, timeout: timedelta, description: str) -> None:
        self._backend, self.ranks, self.transport, self.timeout = backend, list(ranks), transport, timeout
        self.number, self.group_desc = number, description
        self._me = self.ranks.index(transport.rank)
        self._calls = itertools.count()
        self._worker: concurrent.futures.Executor | None = None
        self._posted: dict[bytes, list[tuple[set[int], Receiving]]] = {}  # receives that nothing has come for yet

    @property
    def group_name(self) -> str:
        return str(self.number)

    def rank(self) -> int:
        return self._me

    def size(self) -> int:
        return len(self.ranks)

    def name(self) -> str:
        return str(self._backend)

    def send(self, rank: int, key: bytes, array: np.ndarray, kind: bytes = b"") -> None:
        """A message to a rank of this group."""
        data = memoryview(np.ascontiguousarray(array).reshape(-1).view(np.uint8))
        self.transport.send(self.ranks[rank], b"%d %s" % (self.number, key), kind, data)

    def receive(self, ranks: set[int], key: bytes, seconds: float | None = None, kind: bytes = b"") -> tuple[int, bytearray]:
        """The next message under `key` from one of some ranks of this group; DistNetworkError after some seconds, or the group's timeout."""
        seconds = self.timeout.total_seconds() if seconds is None else seconds
        source, found, data = self.transport.receive({self.ranks[r] for r in ranks}, b"%d %s" % (self.number, key), seconds)
        if found != kind:
            raise RuntimeError(f"the ranks of a group called different collectives: {kind.decode()} here, {found.decode()} on rank {source}")
        return self.ranks.index(source), data

    def posted(self, ranks: set[int], key: bytes, receiving: Receiving) -> Receiving:
        """Messages go to receives in the order in which those were asked for, whichever is waited for first."""
        waiting, entry = self._posted.setdefault(key, []), (ranks, receiving)
        receiving.after = [earlier for sources, earlier in waiting.copy() if not sources.isdisjoint(ranks)]
        waiting.append(entry)
        receiving.when_taken(lambda: waiting.remove(entry))  # it holds a tensor and a message
        return receiving

    def exchange(self, kind: str, timeout: timedelta | None = None) -> Callable[[dict, set], dict]:
        """How the next collective sends and receives: every rank calls collectives in one order, so their number is the key."""
        call, parts, name = next(self._calls), itertools.count(), kind.encode()
        seconds = None if timeout is None else timeout.total_seconds()

        def run(outgoing: dict, sources: set) -> dict:
            key = b"c%d.%d" % (call, next(parts))
            for rank, array in outgoing.items():
                self.send(rank, key, array, name)
            return {rank: self.receive({rank}, key, seconds, name)[1] for rank in sources}
        return run

    def later(self, work: Callable[[], Any]) -> concurrent.futures.Future:
        """Run in this group's thread, after what it was given before."""
        if self._worker is None:
            self._worker = concurrent.futures.ThreadPoolExecutor(1, "torchlike collectives")
        return self._worker.submit(work)

    def close(self) -> None:
        if self._worker is not None:
            self._worker.shutdown()


class _World(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:  # noqa: N802  (torch's name)
        return GroupMember.default


class GroupMember(metaclass=_World):
    """`GroupMember.WORLD` and `group.WORLD` are the default group, None before it is made."""

    default: ClassVar[ProcessGroup | None] = None
    groups: ClassVar[list[ProcessGroup]] = []  # of this process
    made: ClassVar[int] = 0  # groups so far; every process counts all of them, so they have one number everywhere
    store: ClassVar[Store | None] = None
    NON_GROUP_MEMBER: ClassVar[int] = -100


class group(metaclass=_World):  # noqa: N801  (torch's name)
    pass


def default_group(given: ProcessGroup | None = None) -> ProcessGroup:
    """The group that a collective works on; ValueError if there is none yet."""
    chosen = given if given is not None else GroupMember.default
    if chosen is None:
        raise ValueError(_NOT_INITIALIZED)
    return chosen


def member(given: ProcessGroup | None, what: str) -> ProcessGroup | None:
    """The group that a collective works on; None, with a warning, where this process is not in it."""
    chosen = default_group(given)
    if chosen == GroupMember.NON_GROUP_MEMBER:
        warnings.warn(f"Running {what} on global rank {get_rank()} which does not belong to the given group.", stacklevel=3)
        return None
    return chosen


def is_available() -> bool:
    """Whether there is this package: always."""
    return True


def is_initialized() -> bool:
    return GroupMember.default is not None


def is_backend_available(backend: str) -> bool:
    return backend.lower() == "gloo"


def is_gloo_available() -> bool:
    return True


def is_nccl_available() -> bool:
    return False


def is_mpi_available() -> bool:
    return False


def is_ucc_available() -> bool:
    return False


def is_xccl_available() -> bool:
    return False


def is_torchelastic_launched() -> bool:
    return "TORCHELASTIC_RUN_ID" in os.environ


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Store | None = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Makes the default group: the processes meet in a store, given or found by `init_method` (env://, tcp://, file://), and connect.

    ValueError if there is a default group already, or rank and size are missing.
    """
    if GroupMember.default is not None:
        raise ValueError("trying to initialize the default process group twice!")
    if store is not None and init_method is not None:
        raise AssertionError("Cannot specify both init_method and store.")
    name = Backend("gloo" if backend is None else backend)
    if name not in _BACKENDS:
        raise AssertionError(f"Unknown backend type {name}")
    timeout = constants.default_pg_timeout if timeout is None else timeout
    if store is not None:
        if world_size <= 0:
            raise AssertionError("world_size must be positive if using store")
        if rank < 0:
            raise AssertionError("rank must be non-negative if using store")
    else:
        store, rank, world_size = next(rendezvous(init_method or "env://", rank, world_size, timeout=timeout))
        store.set_timeout(timeout)
    if not 0 <= rank < world_size:
        raise ValueError(f"rank {rank} is out of range for world_size={world_size}")
    transport = Transport(PrefixStore("default_pg", store), rank, world_size)
    GroupMember.store, GroupMember.made = store, 0
    GroupMember.default = _made(name, range(world_size), transport, timeout, "default_pg")


def _made(backend: Backend, ranks: Sequence[int], transport: Transport, timeout: timedelta, description: str) -> ProcessGroup:
    made = ProcessGroup(backend, ranks, transport, GroupMember.made, timeout, description)
    GroupMember.made += 1
    GroupMember.groups.append(made)
    return made


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Forgets a group, or all of them with the default one."""
    if group is None and GroupMember.default is None:
        raise AssertionError("Process group cannot be None")
    if group is None or group is GroupMember.default:
        for each in GroupMember.groups:
            each.close()
        GroupMember.default.transport.close()
        with contextlib.suppress(AttributeError):  # a store of the user's own class
            GroupMember.store.close()
        GroupMember.default = GroupMember.store = None
        GroupMember.groups = []
    elif group in GroupMember.groups:
        group.close()
        GroupMember.groups.remove(group)


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
    sort_ranks: bool = True,
) -> ProcessGroup | int:
    """A group of some ranks; every process of the world calls this. GroupMember.NON_GROUP_MEMBER for those outside."""
    world = default_group()
    ranks = list(range(world.size()) if ranks is None else ranks)
    if len(ranks) > world.size():
        raise ValueError("the new group's world size should be less or equal to the world size set by init_process_group")
    for rank in ranks:
        if not 0 <= rank < world.size():
            raise ValueError(f"Rank {rank} is out of range. Valid ranks are 0 to {world.size() - 1} (world_size={world.size()})")
    if len(set(ranks)) != len(ranks):
        raise ValueError(f"Duplicate ranks provided: {ranks}")
    if world.rank() not in ranks:
        GroupMember.made += 1
        return GroupMember.NON_GROUP_MEMBER
    name = world._backend if backend is None else Backend(backend)
    return _made(name, sorted(ranks) if sort_ranks else ranks, world.transport, timeout or world.timeout, group_desc or "undefined")


def new_subgroups(
    group_size: int | None = None,
    group: ProcessGroup | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[ProcessGroup, list]:
    """Neighbours of `group_size` ranks as groups: (this process's, all of them)."""
    size = get_world_size(group)
    if group_size is None:
        raise ValueError("Default group size only takes effect when accelerator is available")
    if group_size <= 0:
        raise ValueError(f"The arg 'group_size' ({group_size}) must be positive")
    if size < group_size:
        raise ValueError(f"The arg 'group_size' ({group_size}) must not exceed the world size ({size})")
    if size % group_size:
        raise ValueError(f"The world size ({size}) must be divisible by '{group_size=}'")
    ranks = get_process_group_ranks(group)
    return new_subgroups_by_enumeration([ranks[i:i + group_size] for i in range(0, size, group_size)], timeout, backend, pg_options, group_desc)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Sequence[Sequence[int]],
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[ProcessGroup | None, list]:
    """Groups of the ranks given: (this process's, all of them)."""
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    seen = [r for ranks in ranks_per_subgroup_list for r in ranks]
    if len(set(seen)) != len(seen):
        raise ValueError("The ranks of the subgroups overlap")
    made = [new_group(ranks, timeout, backend, pg_options, group_desc=group_desc) for ranks in ranks_per_subgroup_list]
    return next((g for g in made if isinstance(g, ProcessGroup)), None), made


def get_rank(group: ProcessGroup | None = None) -> int:
    """This process's rank in a group; -1 outside it."""
    chosen = default_group(group)
    return chosen.rank() if isinstance(chosen, ProcessGroup) else -1


def get_world_size(group: ProcessGroup | None = None) -> int:
    chosen = default_group(group)
    return chosen.size() if isinstance(chosen, ProcessGroup) else -1


def get_backend(group: ProcessGroup | None = None) -> Backend:
    return _known(default_group(group))._backend


def get_default_backend_for_device(device: Any) -> str:
    """The backend that torch would take for tensors of a device."""
    name = getattr(device, "type", str(device).partition(":")[0])
    if name not in Backend.default_device_backend_map:
        raise ValueError(f"Default backend not registered for device : {device}")
    return Backend.default_device_backend_map[name]


def get_pg_count() -> int:
    """How many groups were made."""
    return GroupMember.made


def _known(group: Any) -> ProcessGroup:
    if not isinstance(group, ProcessGroup):
        raise ValueError("Invalid process group specified")
    return group


def get_process_group_ranks(group: ProcessGroup | None) -> list[int]:
    return list(_known(default_group(group)).ranks)


def _rank_not_in_group(group: ProcessGroup | int | None) -> bool:
    """Whether this process is outside of a group."""
    return group is not None and group == GroupMember.NON_GROUP_MEMBER


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    ranks = _known(default_group(group)).ranks
    if not 0 <= group_rank < len(ranks):
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return ranks[group_rank]


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    chosen = default_group(group)
    if not isinstance(chosen, ProcessGroup) or global_rank not in chosen.ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return chosen.ranks.index(global_rank)


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """LOCAL_RANK, or `fallback_rank` where the environment has none."""
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is None:
        raise RuntimeError(
            "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow `get_node_local_rank` to "
            "work, assuming you are not running in a multi-device context and want the code to run locally instead."
        )
    return int(fallback_rank)
