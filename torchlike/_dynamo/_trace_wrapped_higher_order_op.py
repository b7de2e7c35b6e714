"""The mode under which flex attention's mask functions run (transformers runs its own under it, too)."""
from ..overrides import BaseTorchFunctionMode


class TransformGetItemToIndex(BaseTorchFunctionMode):
    """Under it torch gathers for `x[i]` with scalar tensors, where it would ask each for its number. Here `x[i]` always gathers."""
