"""`torch.export`, as far as it says which dimensions are dynamic: `torch.onnx.export(dynamic_shapes=...)` reads that."""
from .dynamic_shapes import Dim, dims  # noqa: F401
