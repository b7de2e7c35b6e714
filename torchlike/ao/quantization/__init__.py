"""torch.ao.quantization: what float models take from it, and the bases of observers."""
from .observer import FakeQuantizeBase, ObserverBase
from .stubs import DeQuantStub, QuantStub, QuantWrapper

__all__ = ["DeQuantStub", "FakeQuantizeBase", "ObserverBase", "QuantStub", "QuantWrapper"]
