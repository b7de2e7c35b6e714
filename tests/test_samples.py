"""Samples that a DataLoader makes in this process: small operations are done at once, and nobody can tell."""
from __future__ import annotations

import importlib

import pytest
from same import same


class _Rows:
    """Samples of whose making others see something: rows written in place, views kept, views of views."""

    def __init__(self, torch, how):
        self.torch, self.how = torch, how
        self.x, self.seen = torch.arange(48.0).reshape(12, 4), []
        if how == "integers":
            self.x = (self.x * 5).to(torch.uint8)
        if how == "of a view":
            self.x = self.x[1:]
        if how == "with gradients":
            self.x.requires_grad_()

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        row = self.x[i]
        if self.how == "written":
            row.mul_(2)
        elif self.how == "added":
            self.x[i] += 1
            row = self.x[i - 1]
        elif self.how == "kept":
            self.seen.append(row)
            self.x[i, 2] = -1.0
        elif self.how == "integers":
            return (row.float() / 255 - 0.5) / 0.25, row.sum()
        elif self.how == "no grad":
            with self.torch.no_grad():
                row = self.x[i][1:] + self.x[-1][:1]
        return row, self.torch.tensor(i)


@pytest.mark.parametrize("how", ["plain", "written", "added", "kept", "integers", "of a view", "with gradients", "no grad"])
@same
def test_samples_are_made_at_once(torch, how):
    rows, found = _Rows(torch, how), []
    for _ in range(2):
        for x, y in importlib.import_module(f"{torch.__name__}.utils.data").DataLoader(rows, batch_size=5, shuffle=True):
            found.append((x.detach(), y, x.stride(), x.requires_grad))
            if how == "with gradients":
                (x * x).sum().backward()
    rows.seen = [(t.clone(), t.storage_offset(), t._base is rows.x, t._version) for t in rows.seen]
    return found, rows.x.detach(), rows.seen, rows.x.grad, rows.x._version


def test_a_batch_is_known():
    """It is one input of the step that reads it: of as many samples in any number that would be another program each time."""
    import numpy as np

    import torchlike
    rows = _Rows(torchlike, "integers")
    rows.x.numpy()
    for x, y in torchlike.utils.data.DataLoader(rows, batch_size=5):
        assert x._value.array.__class__ is np.ndarray and y._value.array.__class__ is np.ndarray
