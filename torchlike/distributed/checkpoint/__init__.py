"""torch.distributed.checkpoint: torch's folders, both ways, also those that many ranks have written. Planners decide what is written and read, storages where."""
from . import format_utils, planner_helpers, staging, state_dict, stateful  # noqa: F401
from .api import CheckpointException
from .default_planner import DefaultLoadPlanner, DefaultSavePlanner
from .filesystem import FileSystemReader, FileSystemWriter
from .hf_storage import HuggingFaceStorageReader, HuggingFaceStorageWriter
from .metadata import BytesStorageMetadata, ChunkStorageMetadata, Metadata, TensorStorageMetadata
from .planner import LoadPlan, LoadPlanner, ReadItem, SavePlan, SavePlanner, WriteItem
from .state_dict_loader import load, load_state_dict
from .state_dict_saver import AsyncCheckpointerType, AsyncSaveResponse, async_save, save, save_state_dict
from .storage import StorageReader, StorageWriter

__all__ = ["AsyncCheckpointerType", "AsyncSaveResponse", "BytesStorageMetadata", "CheckpointException", "ChunkStorageMetadata", "DefaultLoadPlanner",
           "DefaultSavePlanner", "FileSystemReader", "FileSystemWriter", "HuggingFaceStorageReader", "HuggingFaceStorageWriter", "LoadPlan", "LoadPlanner",
           "Metadata", "ReadItem", "SavePlan", "SavePlanner", "StorageReader", "StorageWriter", "TensorStorageMetadata", "WriteItem", "async_save", "load",
           "load_state_dict", "save", "save_state_dict"]
