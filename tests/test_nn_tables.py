"""Embedding and EmbeddingBag: what bags, paddings and sparse gradients do at their edges."""
from __future__ import annotations

import pytest
from nn_models import said
from same import same


def _sparse(g):
    return g._indices(), g._values(), tuple(g.shape)


@pytest.mark.parametrize("padding", [None, 2])
@pytest.mark.parametrize("mode", ["sum", "mean"])
@same
def test_sparse_bags_have_an_entry_per_element(torch, padding, mode):
    w = torch.arange(30.0).reshape(10, 3).requires_grad_()
    found = []
    for index, offsets in (([1, 2, 2, 3], [0, 2, 2]), ([[1, 2], [2, 2], [0, 1]], None), ([2, 2], [0, 1])):
        w.grad = None
        offsets = None if offsets is None else torch.tensor(offsets)
        out = torch.nn.functional.embedding_bag(torch.tensor(index), w, offsets, mode=mode, sparse=True, padding_idx=padding)
        (out * torch.arange(1.0, out.numel() + 1).reshape(out.shape)).sum().backward()
        found += [out.detach(), *_sparse(w.grad)]
    return found


@same
def test_sparse_bags_with_weights_of_elements(torch):
    w = torch.arange(30.0).reshape(10, 3).requires_grad_()
    scale = torch.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    out = torch.nn.functional.embedding_bag(torch.tensor([1, 2, 2, 3]), w, torch.tensor([0, 2, 2]), mode="sum", sparse=True, padding_idx=3, per_sample_weights=scale)
    out.sum().backward()
    return out.detach(), *_sparse(w.grad), scale.grad


@same
def test_empty_bags_reach_their_gradients(torch):
    found = []
    for sparse in (False, True):
        w, scale = torch.ones(5, 3, requires_grad=True), torch.ones(0, requires_grad=True)
        out = torch.nn.functional.embedding_bag(torch.zeros(0, dtype=torch.int64), w, torch.tensor([0, 0]), mode="sum", per_sample_weights=scale, sparse=sparse)
        out.sum().backward()
        found += [out.detach(), w.grad.to_dense(), scale.grad]
    e = torch.nn.Embedding(4, 0, sparse=True)
    e(torch.tensor([[0, 2], [1, 1]])).sum().backward()
    return found, e.weight.grad.is_sparse, tuple(e.weight.grad.shape)


@same
def test_where_the_last_bag_ends(torch):
    """With include_last_offset one of torch's two kernels asks the last offset, the other one does not."""
    w, found = torch.arange(30.0).reshape(10, 3), []
    for dtype in (torch.float32, torch.float64):
        for mode, padding in (("sum", None), ("sum", 6), ("mean", 6), ("max", None)):
            for offsets in ([0, 3, 3], [0, 3, 4], [0, 2, 3]):
                found.append(torch.nn.functional.embedding_bag(torch.arange(4), w.to(dtype), torch.tensor(offsets), mode=mode, include_last_offset=True,
                                                               padding_idx=padding))
    return found


@same
def test_bags_refuse(torch):
    F, w, start = torch.nn.functional, torch.ones(10, 3), torch.tensor([0, 1])
    return [
        *(said(F.embedding_bag, torch.tensor(index), w.to(dtype), start, mode=mode, padding_idx=padding)
          for index in ([1, -1, 10], [1, 10]) for dtype in (torch.float32, torch.float64, torch.bfloat16) for mode in ("sum", "max") for padding in (None, 0)),
        said(F.embedding_bag, torch.tensor([0, 1]), w, start, mode="sum", per_sample_weights=torch.ones(2, dtype=torch.float64)),
    ]


@same
def test_tables_of_integers(torch):
    found = []
    for dtype in (torch.uint8, torch.int64, torch.bool):
        e = torch.nn.Embedding.from_pretrained(torch.ones(3, 2, dtype=dtype))
        found += [e.weight, e.weight.requires_grad, e(torch.tensor([0, 2]))]
        found += [said(torch.nn.Embedding.from_pretrained, torch.ones(3, 2, dtype=dtype), freeze=False)]
    return found
