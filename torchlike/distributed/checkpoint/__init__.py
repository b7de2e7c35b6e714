"""torch.distributed.checkpoint: torch's folders, both ways, also those that many ranks have written. Each rank writes its pieces of DTensors, rank 0 all else."""
from . import format_utils, staging, state_dict, stateful  # noqa: F401
from .api import CheckpointException
from .default_planner import DefaultLoadPlanner, DefaultSavePlanner
from .filesystem import FileSystemReader, FileSystemWriter
from .hf_storage import HuggingFaceStorageReader, HuggingFaceStorageWriter
from .metadata import BytesStorageMetadata, ChunkStorageMetadata, Metadata, TensorStorageMetadata
from .state_dict_loader import load, load_state_dict
from .state_dict_saver import AsyncCheckpointerType, AsyncSaveResponse, async_save, save, save_state_dict

__all__ = ["AsyncCheckpointerType", "AsyncSaveResponse", "BytesStorageMetadata", "CheckpointException", "ChunkStorageMetadata", "DefaultLoadPlanner",
           "DefaultSavePlanner", "FileSystemReader", "FileSystemWriter", "HuggingFaceStorageReader", "HuggingFaceStorageWriter", "Metadata",
           "TensorStorageMetadata", "async_save", "load", "load_state_dict", "save", "save_state_dict"]
