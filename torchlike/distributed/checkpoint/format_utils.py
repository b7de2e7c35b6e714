"""Distributed checkpoints to files of torch.save, and back."""
from __future__ import annotations

import os

from ...serialization import load as load_file
from ...serialization import save as save_file
from ._nesting import put
from .filesystem import FileSystemReader
from .metadata import TensorStorageMetadata
from .state_dict_saver import save

__all__ = ["dcp_to_torch_save", "torch_save_to_dcp"]


def dcp_to_torch_save(dcp_checkpoint_dir: str | os.PathLike, torch_save_path: str | os.PathLike) -> None:
    """Write a checkpoint's whole state into one file."""
    reader, state = FileSystemReader(dcp_checkpoint_dir), {}
    about = reader.read_metadata()
    for name, saved in about.state_dict_metadata.items():
        value = reader.read_tensor(name) if isinstance(saved, TensorStorageMetadata) else reader.read_object(name)
        put(state, (about.planner_data or {}).get(name, (name,)), value)
    save_file(state, torch_save_path)


def torch_save_to_dcp(torch_save_path: str | os.PathLike, dcp_checkpoint_dir: str | os.PathLike) -> None:
    """Write the state in a file as a checkpoint."""
    save(load_file(torch_save_path, weights_only=False), checkpoint_id=dcp_checkpoint_dir, no_dist=True)
