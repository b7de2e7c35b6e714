"""Models to export, on either torch."""
from typing import Any


def mlp(torch: Any) -> Any:
    nn = torch.nn

    class MLP(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(4, 8), nn.Linear(8, 2)

        def forward(self, x):
            return self.b(torch.relu(self.a(x)))
    return MLP(), (torch.linspace(-1, 1, 8).reshape(2, 4),)


def cnn(torch: Any, training: bool = False) -> Any:
    nn = torch.nn

    class CNN(nn.Module):
        def __init__(self):
            super().__init__()
            self.c, self.bn, self.r, self.p = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.MaxPool2d(2)
            self.ap, self.d, self.f = nn.AdaptiveAvgPool2d(1), nn.Dropout(0.5), nn.Linear(4, 5)

        def forward(self, x):
            x = self.ap(self.p(self.r(self.bn(self.c(x)))))
            return self.f(self.d(torch.flatten(x, 1)))
    return CNN().train(training), (torch.linspace(-1, 1, 384).reshape(2, 3, 8, 8),)


def transformer(torch: Any, training: bool = False) -> Any:
    nn = torch.nn

    class Transformer(nn.Module):
        def __init__(self):
            super().__init__()
            self.e, self.enc, self.h = nn.Embedding(10, 8), nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), nn.Linear(8, 10)
            self.register_buffer("pos", torch.randn(6, 8))

        def forward(self, x):
            return self.h(self.enc(self.e(x) + self.pos))
    return Transformer().train(training), (torch.arange(12).reshape(2, 6) % 10,)


def block(torch: Any) -> Any:
    """Attention as people write it."""
    nn, F = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln, self.qkv, self.out = nn.LayerNorm(8), nn.Linear(8, 24), nn.Linear(8, 8)

        def forward(self, x):
            b, t, c = x.shape
            q, k, v = self.qkv(self.ln(x)).split(c, dim=2)
            q, k, v = (y.view(b, t, 2, c // 2).transpose(1, 2) for y in (q, k, v))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return x + self.out(y.transpose(1, 2).contiguous().view(b, t, c))
    return Block(), (torch.linspace(-1, 1, 80).reshape(2, 5, 8),)


def mutable(torch: Any) -> Any:
    """Writes to a buffer, an argument and a view of it; constants; results in containers."""
    nn = torch.nn

    class Mutable(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("n", torch.zeros(3))
            self.register_buffer("k", torch.zeros(1), persistent=False)
            self.t = torch.ones(3)

        def forward(self, x, y=None, *, z):
            self.n.add_(1)
            x.mul_(2)
            v = x[0]
            v.relu_()
            a, b = x.chunk(2, 0)
            return {"a": x + self.t, "b": (a * z["q"], b + self.n + 2)}
    return Mutable(), (torch.linspace(-1, 1, 12).reshape(4, 3),)


def recurrent(torch: Any) -> Any:
    """An LSTM and a GRU."""
    nn = torch.nn

    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.LSTM(3, 4, batch_first=True, bidirectional=True, num_layers=2), nn.GRU(8, 5)

        def forward(self, x):
            y, (h, c) = self.a(x)
            return self.b(y)[0], h + c
    return Recurrent(), (torch.linspace(-1, 1, 24).reshape(2, 4, 3),)
