"""`torch.onnx`, as far as models ask it something while they run, and libraries say how their operations are exported."""
from . import symbolic_helper, symbolic_opset11  # noqa: F401
from ._symbolic import TensorProtoDataType, register_custom_op_symbolic, unregister_custom_op_symbolic  # noqa: F401


def is_in_onnx_export() -> bool:
    """False: no model is being exported."""
    return False
