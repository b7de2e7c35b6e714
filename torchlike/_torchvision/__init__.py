"""The operations that torchvision has in C++: its libraries are linked against PyTorch's own and cannot be loaded here."""
import importlib

# by the file that torchvision loads
LIBRARIES = {"_C": ("schemas", "boxes", "regions", "deformable"), "image": ("images",)}


def load(library: str) -> None:
    """Defines the operations that torchvision expects of one of its libraries, once."""
    for name in LIBRARIES[library]:
        importlib.import_module(f"{__name__}.{name}")
