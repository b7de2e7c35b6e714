"""What the tests of nn share: a small model, and what a call says when it fails."""
from __future__ import annotations

from typing import Any


def said(function: Any, *args: Any, **kwargs: Any) -> Any:
    """What a call returns, or the class and the words of what it raises."""
    try:
        return function(*args, **kwargs)
    except Exception as error:  # the error is the result
        return f"{type(error).__name__}: {error}"


def net(torch: Any) -> Any:
    """Two children of the same kind, one inside the other, with parameters and buffers."""
    nn = torch.nn

    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.tensor([2.0, 3.0]))
            self.register_parameter("shift", None)
            self.register_buffer("count", torch.tensor(3))
            self.register_buffer("scratch", torch.ones(2), persistent=False)

        def forward(self, x, gain=1.0):
            return x * self.scale * gain

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(2, 2)
            self.inner = Inner()
            self.again = self.first

        def forward(self, x, gain=1.0):
            return self.inner(self.first(x), gain=gain)

        def extra_repr(self):
            return "made for tests"

    return Net()
