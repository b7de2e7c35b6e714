"""Memory that nobody wrote, under deterministic algorithms, beside real torch."""
import pytest
from same import error, same


@pytest.fixture(autouse=True)
def switches():
    import torch

    import torchlike
    yield
    for t in (torch, torchlike):
        t.use_deterministic_algorithms(False)
        t.utils.deterministic.fill_uninitialized_memory = True


def made(torch):
    for dtype in (torch.float32, torch.bfloat16, torch.complex64, torch.bool, torch.uint8, torch.int64, torch.uint16):
        yield torch.empty(2, 3, dtype=dtype)
        yield torch.empty(3, out=torch.zeros(1, dtype=dtype))
        yield torch.zeros(2, dtype=dtype).resize_(4)
    x = torch.zeros(2)
    yield from (torch.empty_like(x), torch.empty_like(x, dtype=torch.int8), x.new_empty(2), x.new_empty(2, dtype=torch.int16), x.new(2), torch.Tensor(2), torch.FloatTensor(2))
    yield from (torch.empty_strided((2, 2), (1, 2)), torch.empty_permuted((2, 3), (1, 0)), x.new_empty_strided((2,), (2,)), x.new(torch.Size([2])))
    yield x.resize_as_(torch.zeros(3))


@same
def test_is_filled(torch):
    torch.use_deterministic_algorithms(True)
    return list(made(torch))


@same
def test_is_not_filled_where_zeros_are_asked_for(torch):
    torch.set_deterministic_debug_mode("warn")
    return torch.zeros(2), torch.zeros_like(torch.ones(2)), torch.ones(2).new_zeros(2), torch.full((2,), 3), torch.nn.Embedding(2, 2, padding_idx=0).weight[0]


@same
def test_is_not_filled_where_that_is_off(torch):
    torch.use_deterministic_algorithms(True)
    switch = torch.utils.deterministic
    yield switch.fill_uninitialized_memory
    switch.fill_uninitialized_memory = False
    yield switch.fill_uninitialized_memory, torch.zeros(2).resize_(2), error(setattr, switch, "fill_uninitialized_memory", 1)


def test_holds_zeros_otherwise():
    import torchlike
    assert torchlike.empty(3).tolist() == [0, 0, 0] and torchlike.zeros(1).resize_(3).tolist() == [0, 0, 0]
