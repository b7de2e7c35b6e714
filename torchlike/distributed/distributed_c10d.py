"""The place of torch.distributed's functions in programs that name the file they are in."""
from pickle import Pickler as _pickler  # noqa: F401, N813
from pickle import Unpickler as _unpickler  # noqa: F401, N813  (avalanche)

from ._functional_operators import _resolve_process_group  # noqa: F401
from .collectives import (  # noqa: F401
    _all_gather_base,
    _reduce_scatter_base,
    all_gather,
    all_gather_coalesced,
    all_gather_into_tensor,
    all_gather_single,
    all_reduce,
    all_reduce_coalesced,
    all_to_all,
    all_to_all_single,
    barrier,
    broadcast,
    gather,
    monitored_barrier,
    reduce,
    reduce_scatter,
    reduce_scatter_single,
    reduce_scatter_tensor,
    scatter,
    supports_complex,
)
from .constants import default_pg_timeout  # noqa: F401
from .objects import (  # noqa: F401
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)
from .point_to_point import P2POp, batch_isend_irecv, irecv, isend, recv, send  # noqa: F401
from .process_group import (  # noqa: F401
    Backend,
    GroupMember,
    ProcessGroup,
    ReduceOp,
    _rank_not_in_group,
    destroy_process_group,
    get_backend,
    get_default_backend_for_device,
    get_global_rank,
    get_group_rank,
    get_node_local_rank,
    get_pg_count,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    init_process_group,
    is_backend_available,
    is_gloo_available,
    is_initialized,
    is_mpi_available,
    is_nccl_available,
    is_torchelastic_launched,
    is_ucc_available,
    is_xccl_available,
    new_group,
    new_subgroups,
    new_subgroups_by_enumeration,
    reduce_op,
)
from .process_group import default_group as _get_default_group  # noqa: F401
from .rendezvous import register_rendezvous_handler, rendezvous  # noqa: F401
from .store import PrefixStore, Store  # noqa: F401
from .work import Work  # noqa: F401
