"""The marks of jit and fx. The same under torch and torchlike."""
import torch
import torch.fx
import torch.jit
import torch.onnx
from torch.jit import Final
from torch.jit.annotations import List

print(torch.jit.is_scripting(), torch.jit.is_tracing(), torch.onnx.is_in_onnx_export(), List[int])

class M(torch.nn.Module):
    n: Final[int] = 3

    @torch.jit.ignore
    def a(self): return 1

    @torch.jit.ignore(drop=True)
    def b(self): return 2

    @torch.jit.unused
    def c(self): return 3

    @torch.jit.export
    def d(self): return torch.jit.annotate(int, 4)

m = M()
print(m.a(), m.b(), m.c(), m.d(), m.n)

@torch.jit.script
def double(x: torch.Tensor) -> torch.Tensor:
    return x * 2

@torch.jit.interface
class Maker:
    def make(self, x: torch.Tensor) -> torch.Tensor: pass

print(Maker.__name__)
for bad in (3, double):
    try:
        torch.jit.interface(bad)
    except RuntimeError as error:
        print(str(error)[:50])

print(double(torch.ones(2)).tolist(), torch.fx.wrap("len"), torch.fx.wrap(len) is len)

def inside():
    torch.fx.wrap("len")

for f in (inside, lambda: torch.fx.wrap(3), lambda: torch.jit.ignore(3)):
    try:
        f()
    except Exception as error:
        print(type(error).__name__, error)
