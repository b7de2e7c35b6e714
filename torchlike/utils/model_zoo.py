"""The older name of torchlike.hub's downloads."""
from torchlike.hub import load_state_dict_from_url as load_url

__all__ = ["load_url"]
