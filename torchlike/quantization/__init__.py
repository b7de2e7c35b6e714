"""torch.quantization: the older name of torch.ao.quantization."""
from ..ao.quantization import DeQuantStub, FakeQuantizeBase, ObserverBase, QuantStub, QuantWrapper

__all__ = ["DeQuantStub", "FakeQuantizeBase", "ObserverBase", "QuantStub", "QuantWrapper"]
