"""Process groups of one process: making them, and the questions about ranks."""

import enum
import os
from datetime import timedelta
from typing import Any, ClassVar

_BACKENDS = ("gloo", "nccl", "mpi", "ucc", "xccl", "cpu:gloo,cuda:nccl")
_SCHEMES = ("env", "file", "tcp")
_NOT_INITIALIZED = "Default process group has not been initialized, please make sure to call init_process_group."


class Backend(str):
    """The name of a backend, in lower case. With one process none of them has anything to send."""

    GLOO, NCCL, MPI, UCC, XCCL, UNDEFINED = "gloo", "nccl", "mpi", "ucc", "xccl", "undefined"

    def __new__(cls, name: str) -> "Backend":
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        return super().__new__(cls, name.lower())


class _ReduceOps(type):
    """A kind of reduction passes for a reduction."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return type(instance) in (cls, cls.RedOpType)


class ReduceOp(metaclass=_ReduceOps):
    """How all_reduce and its kin combine the ranks' tensors; on one rank each gives the tensor itself.

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


class ProcessGroup:
    """A set of ranks: here always rank 0 alone."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def rank(self) -> int:
        return 0

    def size(self) -> int:
        return 1


class _World(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:  # noqa: N802  (torch's name)
        return GroupMember.default


class GroupMember(metaclass=_World):
    """`GroupMember.WORLD` and `group.WORLD` are the default group, None before it is made."""

    default: ClassVar[ProcessGroup | None] = None
    NON_GROUP_MEMBER: ClassVar[int] = -100


class group(metaclass=_World):  # noqa: N801  (torch's name)
    pass


def default_group(given: ProcessGroup | None = None) -> ProcessGroup:
    """The group that a collective works on; ValueError if there is none yet."""
    chosen = given if given is not None else GroupMember.default
    if chosen is None:
        raise ValueError(_NOT_INITIALIZED)
    return chosen


def is_available() -> bool:
    """False, as in a build of torch without distributed: programs must not plan for several processes.

    What one process can do is there all the same, for those that call it without asking.
    """
    return False


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


def is_torchelastic_launched() -> bool:
    return "TORCHELASTIC_RUN_ID" in os.environ


def _from_environment(name: str, given: int) -> int:
    if given >= 0:
        return given
    if name not in os.environ:
        raise ValueError(
            f"Error initializing torch.distributed using env:// rendezvous: environment variable {name} expected, "
            "but not set"
        )
    return int(os.environ[name])


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Makes the default group. Rank and size come from the arguments or, for `env://`, from RANK and WORLD_SIZE.

    RuntimeError for a world of more than one process: torchlike does not support several yet.
    """
    if GroupMember.default is not None:
        raise ValueError("trying to initialize the default process group twice!")
    name = Backend("gloo" if backend is None else backend)
    if name not in _BACKENDS:
        raise AssertionError(f"Unknown backend type {name}")
    scheme = "env" if init_method is None else init_method.partition("://")[0]
    if store is None and scheme not in _SCHEMES:
        raise RuntimeError(f"No rendezvous handler for {scheme}://")
    if store is None and scheme == "env":
        rank, world_size = _from_environment("RANK", rank), _from_environment("WORLD_SIZE", world_size)
    if world_size != 1:
        raise RuntimeError(
            f"torch.distributed with world_size={world_size} is not supported yet by torchlike: it runs one process, "
            "which can use all of its devices"
        )
    if rank != 0:
        raise ValueError(f"rank {rank} is out of range for world_size=1")
    GroupMember.default = ProcessGroup(name)


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Forgets the default group (or does nothing more for a group of `new_group`)."""
    if group is None and GroupMember.default is None:
        raise AssertionError("Process group cannot be None")
    if group is None or group is GroupMember.default:
        GroupMember.default = None


def new_group(
    ranks: list[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
    sort_ranks: bool = True,
) -> ProcessGroup:
    """A group of the ranks given: of one process only [0] can be."""
    world = default_group()
    for rank in ranks if ranks is not None else ():
        if rank != 0 and len(ranks) == 1:
            raise ValueError(f"Rank {rank} is out of range. Valid ranks are 0 to 0 (world_size=1)")
    if ranks is not None and len(ranks) > 1:
        raise ValueError(
            "the new group's world size should be less or equal to the world size set by init_process_group"
        )
    return ProcessGroup(world._backend if backend is None else Backend(backend))


def get_rank(group: ProcessGroup | None = None) -> int:
    return default_group(group).rank()


def get_world_size(group: ProcessGroup | None = None) -> int:
    return default_group(group).size()


def get_backend(group: ProcessGroup | None = None) -> Backend:
    return default_group(group)._backend


def get_process_group_ranks(group: ProcessGroup | None) -> list[int]:
    default_group(group)
    return [0]


def _only_rank(rank: int) -> int:
    if rank != 0:
        raise ValueError(f"rank {rank} is not part of the group")
    return 0


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    return _only_rank(group_rank)


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    return _only_rank(global_rank)


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
