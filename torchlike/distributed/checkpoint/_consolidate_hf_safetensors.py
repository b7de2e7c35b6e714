"""Whole files of safetensors from the pieces that ranks wrote."""
from pathlib import Path

from .hf_storage import consolidated

__all__ = ["consolidate_safetensors_files"]


def consolidate_safetensors_files(input_dir: str, output_dir: str, fqn_to_index_mapping: dict[str, int] | None = None, num_threads: int = 1) -> None:
    """Make files in `output_dir` of the pieces in `input_dir`, each tensor in the file of its number."""
    consolidated(Path(input_dir), Path(output_dir), fqn_to_index_mapping)
