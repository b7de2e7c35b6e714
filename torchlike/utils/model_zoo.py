"""The older name of torchlike.hub's downloads."""
from torchlike.hub import load_state_dict_from_url as load_url
from torchlike.hub import tqdm  # noqa: F401  (torchvision takes it from here)

__all__ = ["load_url"]
