"""The operations that torchaudio has in C++: its libraries are linked against PyTorch's own and cannot be loaded here."""
import importlib

# by the file that torchaudio loads
LIBRARIES = {"_torchaudio": ("about",), "libtorchaudio": ("filters", "alignment", "transducer")}


def load(library: str) -> None:
    """Defines the operations that torchaudio expects of one of its libraries, once."""
    for name in LIBRARIES[library]:
        importlib.import_module(f"{__name__}.{name}")
