from ..device_mesh import DeviceMesh, init_device_mesh  # noqa: F401
