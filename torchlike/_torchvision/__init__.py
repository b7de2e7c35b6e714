"""The operations that torchvision has in C++: its libraries are linked against PyTorch's own and cannot be loaded here."""
import importlib

_REGIONS, _IMAGES = ("schemas", "boxes", "regions", "deformable"), ("images",)
# by the file that torchvision loads: from 0.29 on it builds them against PyTorch's stable interface, and says so in their names
LIBRARIES = {"_C": _REGIONS, "_C_stable": _REGIONS, "image": _IMAGES, "image_stable": _IMAGES}


def load(library: str) -> None:
    """Defines the operations that torchvision expects of one of its libraries, once."""
    for name in LIBRARIES[library]:
        importlib.import_module(f"{__name__}.{name}")
