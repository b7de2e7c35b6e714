"""torch.backends.quantized: which library quantized arithmetic would be PyTorch's own. Here one does all: its numbers are those of x86 and fbgemm."""
import sys
from types import ModuleType

_ENGINES = ["qnnpack", "onednn", "x86", "fbgemm"]


class _Module(ModuleType):
    @property
    def supported_engines(self) -> list[str]:
        return list(_ENGINES)

    @supported_engines.setter
    def supported_engines(self, names: list[str]) -> None:
        raise RuntimeError("Assignment not supported")

    @property
    def engine(self) -> str:
        return self._chosen

    @engine.setter
    def engine(self, name: str) -> None:
        if name not in (*_ENGINES, "none"):
            raise RuntimeError(f"{name} is not a valid value for quantized engine")
        if name == "none":
            raise RuntimeError("quantized engine NoQEngine is not supported")
        self.__dict__["_chosen"] = name


_chosen = "x86"
sys.modules[__name__].__class__ = _Module
