"""Data pipes: steps of loading as objects, each made from the one before it (`pipe.map(f).shuffle().batch(4)`)."""
from . import iter, map

__all__ = ["iter", "map"]
