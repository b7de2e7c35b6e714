"""Meshes by the path that programs of tensor parallelism import them from."""
from ..device_mesh import DeviceMesh, init_device_mesh

__all__ = ["init_device_mesh", "DeviceMesh"]
