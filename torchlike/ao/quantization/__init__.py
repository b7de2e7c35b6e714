"""torch.ao.quantization: what float models take from it."""
from .stubs import DeQuantStub, QuantStub, QuantWrapper

__all__ = ["DeQuantStub", "QuantStub", "QuantWrapper"]
