"""Views that show the negated or conjugated numbers of their memory: what they say, read and write, and their gradients."""
import pytest
from same import error, same

VIEWS = {
    "negated": lambda torch, x: torch._neg_view(x),
    "conjugated": lambda torch, x: x.conj(),
    "negated and conjugated": lambda torch, x: x._neg_view().conj(),
    "negated twice": lambda torch, x: x._neg_view()._neg_view(),
    "imaginary parts, negated": lambda torch, x: x._neg_view().imag,
    "imaginary parts, negated twice": lambda torch, x: x.conj()._neg_view().imag,
    "pairs": lambda torch, x: torch.view_as_real(x._neg_view()),
}


@pytest.mark.parametrize("kind", VIEWS)
@same
def test_what_a_negated_view_shows_and_writes(torch, kind):
    x = torch.complex(torch.arange(6.0), torch.arange(6.0, 12)).reshape(2, 3)
    v = VIEWS[kind](torch, x)
    found = [v.clone(), v.is_neg(), v.is_conj(), v.stride(), v.data_ptr() == x.data_ptr(), v[:, 1].is_neg(), v.t().is_conj() if v.ndim == 2 else None,
             v.resolve_neg().is_neg(), v.as_strided((2, 2), (1, 2)).clone(), v.as_strided((2,), (1,)).is_neg(), v.as_strided((2,), (1,)).is_conj()]
    v.mul_(3)
    v[0] += 1
    v.as_strided((2,), (2,)).add_(7)
    v[0] = v[1].clone()
    return found, v.clone(), x


@pytest.mark.parametrize("kind", ("negated", "conjugated", "negated and conjugated"))
@same
def test_gradients_through_as_strided_of_a_negated_leaf(torch, kind):
    """A leaf's gradient is that of the numbers it shows, not of those in its memory."""
    x = torch.complex(torch.arange(6.0), torch.arange(6.0, 12))
    with torch.no_grad():
        leaf = VIEWS[kind](torch, x)
    leaf.requires_grad_()
    window = leaf.as_strided((2, 2), (1, 2))
    (window * torch.tensor([[1, 2j], [3, 4j]])).sum().abs().backward()
    return window.detach().clone(), leaf.grad.clone()


@same
def test_gradients_through_negated_views(torch):
    x = torch.arange(1.0, 7).reshape(2, 3).requires_grad_()
    y = x * 2
    (torch._neg_view(y) ** 3).sum().backward()
    z = torch.zeros(3)
    z._neg_view().copy_(x[0])
    z.sum().backward()
    return z.detach(), x.grad, torch._neg_view(y).grad_fn.name()


@same
def test_what_is_refused_of_negated_views(torch):
    return [error(lambda: torch._neg_view(torch.ones(2, dtype=torch.bool)).clone()), error(torch.ones(2)._neg_view().numpy), error(torch.ones(2)._neg_view().view, torch.int32),
            torch.ones(2, dtype=torch.uint8)._neg_view().clone()]
