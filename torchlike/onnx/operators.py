"""`torch.onnx.operators`: sizes as tensors."""
from .. import _reshape_from_tensor as reshape_from_tensor_shape  # noqa: F401
from .. import _shape_as_tensor as shape_as_tensor  # noqa: F401
