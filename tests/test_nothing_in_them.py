"""Layers of tensors without elements: batches and sequences of length 0."""
import pytest
from same import error, same


@pytest.mark.parametrize("window", ({"kernel_size": 3, "stride": 2}, {"kernel_size": 2}, {"kernel_size": 5, "stride": 3, "ceil_mode": True}, {"kernel_size": 3, "padding": 1}))
@pytest.mark.parametrize("dims", (1, 2, 3))
@same
def test_pools_of_no_images(torch, dims, window):
    x = torch.zeros((0, 4) + (9,) * dims, requires_grad=True)
    y = getattr(torch.nn.functional, f"max_pool{dims}d")(x, **window)
    y.sum().backward()
    return y.shape, x.grad


@same
def test_sequences_of_length_0(torch):
    """They are refused, batches of no sequences are not."""
    found = []
    for layer in (torch.nn.LSTM(4, 3), torch.nn.GRU(4, 3, bidirectional=True), torch.nn.RNN(4, 3, num_layers=2), torch.nn.LSTM(4, 3, batch_first=True)):
        found += [error(layer, torch.zeros(shape)) for shape in ((0, 2, 4), (2, 0, 4), (0, 4), (0, 0, 4), (3, 4))]
    return found
