"""Distributed checkpoints to files of torch.save, and back."""
from __future__ import annotations

import os

from ...serialization import load as load_file
from ...serialization import save as save_file
from .default_planner import _EmptyStateDictLoadPlanner
from .filesystem import FileSystemReader
from .state_dict_loader import _load_state_dict
from .state_dict_saver import save

__all__ = ["dcp_to_torch_save", "torch_save_to_dcp"]


def dcp_to_torch_save(dcp_checkpoint_dir: str | os.PathLike, torch_save_path: str | os.PathLike) -> None:
    """Write a checkpoint's whole state into one file."""
    state: dict = {}
    _load_state_dict(state, FileSystemReader(dcp_checkpoint_dir), planner=_EmptyStateDictLoadPlanner(), no_dist=True)
    save_file(state, torch_save_path)


def torch_save_to_dcp(torch_save_path: str | os.PathLike, dcp_checkpoint_dir: str | os.PathLike) -> None:
    """Write the state in a file as a checkpoint."""
    save(load_file(torch_save_path, weights_only=False), checkpoint_id=dcp_checkpoint_dir, no_dist=True)
