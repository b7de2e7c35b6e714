"""`torch.onnx`, as far as models ask it something while they run."""


def is_in_onnx_export() -> bool:
    """False: no model is being exported."""
    return False
