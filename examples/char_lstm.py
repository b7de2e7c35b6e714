"""Trains an LSTM on the characters of five plays by Shakespeare, then lets it write.

    python -m torchlike.run examples/char_lstm.py                         # on torchlike
    python -m torchlike.run examples/char_lstm.py --resume --steps 2000   # go on from the checkpoint
    python examples/char_lstm.py                                          # the same program on PyTorch
"""

import torch
import torch.nn as nn
from text import Text, draw, options, train


class CharLSTM(nn.Module):
    """Character numbers (batch, length) to the logits of each next character (batch, length, characters)."""

    def __init__(self, characters, width, layers, dropout):
        super().__init__()
        self.embedding = nn.Embedding(characters, width)
        self.lstm = nn.LSTM(width, width, layers, batch_first=True, dropout=dropout)
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(width, characters)

    def forward(self, ids):
        return self.step(ids, None)[0]

    def step(self, ids, state):
        """The logits, and the state of the LSTM after the last character, from where the next call can go on."""
        output, state = self.lstm(self.embedding(ids), state)
        return self.head(self.dropout(output)), state

    @torch.no_grad()
    def generate(self, ids, count, temperature):
        """Appends `count` characters to `ids` (batch, length); only the newest is read, the state knows the rest."""
        self.eval()
        logits, state = self.step(ids, None)
        written = [ids]
        for _ in range(count):
            written.append(draw(logits[:, -1], temperature))
            logits, state = self.step(written[-1], state)
        return torch.cat(written, dim=1)


def main():
    args = options(__doc__, steps=1000, width=192, layers=2, lr=5e-3, checkpoint="char_lstm.pt").parse_args()
    torch.manual_seed(args.seed)
    text = Text(args.text)
    model = CharLSTM(len(text.characters), args.width, args.layers, args.dropout)
    print(f"torch {torch.__version__}; {sum(p.numel() for p in model.parameters())} parameters; "
          f"{len(text.train)} characters to learn from")  # fmt: skip
    train(model, text, args)
    torch.manual_seed(args.seed)
    written = model.generate(text.encode(args.prompt).unsqueeze(0), args.generate, args.temperature)
    print(text.decode(written[0]))


if __name__ == "__main__":
    main()
