"""Trains a small GPT on the characters of five plays by Shakespeare, then lets it write.

    python -m torchlike.run examples/char_gpt.py                          # on torchlike
    python -m torchlike.run examples/char_gpt.py --resume --steps 2000    # go on from the checkpoint
    python examples/char_gpt.py                                           # the same program on PyTorch
"""

import torch
import torch.nn as nn
import torch.nn.functional as F
from text import Text, draw, options, train


class Attention(nn.Module):
    """Causal self-attention: every character looks back at those before it."""

    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (
            part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for part in self.qkv(x).split(width, dim=2)
        )
        dropout = self.dropout if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, dropout)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(dropout)
        )

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    """Character numbers (batch, length) to the logits of each next character (batch, length, characters)."""

    def __init__(self, characters, length, width, layers, heads, dropout):
        super().__init__()
        self.length = length
        self.character = nn.Embedding(characters, width)
        self.position = nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Block(width, heads, dropout) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, characters, bias=False)
        self.head.weight = self.character.weight
        self.apply(self._start)

    @staticmethod
    def _start(module):
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def forward(self, ids):
        positions = torch.arange(ids.size(1), device=ids.device)
        x = self.character(ids) + self.position(positions)
        return self.head(self.norm(self.blocks(x)))

    @torch.no_grad()
    def generate(self, ids, count, temperature):
        """Appends `count` characters to `ids` (batch, length), which grows by one each time."""
        self.eval()
        for _ in range(count):
            logits = self(ids[:, -self.length :])[:, -1]
            ids = torch.cat([ids, draw(logits, temperature)], dim=1)
        return ids


def main():
    parser = options(__doc__, steps=1000, width=128, layers=4, lr=4e-3, checkpoint="char_gpt.pt")
    parser.add_argument("--heads", type=int, default=4)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    text = Text(args.text)
    model = GPT(len(text.characters), args.length, args.width, args.layers, args.heads, args.dropout)
    print(f"torch {torch.__version__}; {sum(p.numel() for p in model.parameters())} parameters; "
          f"{len(text.train)} characters to learn from")  # fmt: skip
    train(model, text, args)
    torch.manual_seed(args.seed)
    written = model.generate(text.encode(args.prompt).unsqueeze(0), args.generate, args.temperature)
    print(text.decode(written[0]))


if __name__ == "__main__":
    main()
