"""What a case is: functions that do one training step or one forward each and look at one number of the result."""
from __future__ import annotations

import torch
from torch import nn

F = nn.functional


def steps(model, inputs, loss_of, optimizer=None, result=lambda out: out):
    """A training step and an inference forward of `model`; `loss_of` takes what `result` takes of its output."""
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    call = (lambda: model(**inputs)) if isinstance(inputs, dict) else (lambda: model(*inputs))

    def train():
        optimizer.zero_grad()
        loss = loss_of(result(call()))
        loss.backward()
        optimizer.step()
        return loss.item()

    def forward():
        with torch.no_grad():
            return result(call()).sum().item()
    return {"train": (model.train, train), "forward": (model.eval, forward)}


def classifier(model, batch, side, classes=1000, channels=3):
    """The same for a classifier of images, with cross-entropy and SGD."""
    x, y = torch.randn(batch, channels, side, side), torch.randint(0, classes, (batch,))
    return steps(model, (x,), lambda out: F.cross_entropy(out, y), result=lambda out: out if torch.is_tensor(out) else out[0])
