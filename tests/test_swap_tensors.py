"""torch.utils.swap_tensors, beside real torch."""
import weakref

import pytest


def text(f):
    try:
        return f()
    except Exception as error:
        return type(error).__name__, str(error)


def test_contents_change_places(subject, oracle):
    """Data, flags, classes, attributes and gradients move; an optimizer holds what it held."""
    def facts(torch):
        swap, out = torch.utils.swap_tensors, []
        a, b = torch.ones(2, requires_grad=True), torch.zeros(3)
        a.note = 1
        swap(a, b)
        out += [repr(a), repr(b), hasattr(a, "note"), b.note]
        a, b = torch.nn.Parameter(torch.ones(2)), torch.zeros(3)
        swap(a, b)
        out += [type(a).__name__, type(b).__name__]
        a, b = torch.ones(2, requires_grad=True), torch.zeros(2)
        (a * a).sum().backward()
        swap(a, b)
        out += [b.grad.tolist(), a.grad]
        (b * 3).sum().backward()
        out += [b.grad.tolist()]
        a, b = torch.arange(4.0), torch.zeros(1)
        v, d = a[1:3], a.detach()
        swap(v, b)
        b.add_(10)
        out += [a.tolist()]
        del b
        v = None
        swap(d, d)
        out += [d.tolist()]
        layer = torch.nn.Linear(2, 2)
        optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
        layer(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        swap(layer.weight, torch.nn.Parameter(torch.zeros(2, 2)))
        layer(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        return [*out, layer.weight is optimizer.param_groups[0]["params"][0], repr(layer.weight)]
    assert facts(subject) == facts(oracle)


def test_refusals(subject, oracle):
    """Tensors with views or weak references stay; a graph made before does not reach what the tensor has become."""
    def facts(torch):
        swap, other, out = torch.utils.swap_tensors, torch.zeros(2), []
        a = torch.ones(2)
        view = a[0]
        out.append(text(lambda: swap(a, other)))
        b = torch.ones(2, requires_grad=True)
        view = b[0:1]
        out += [text(lambda: swap(b, other)), tuple(view.shape)]
        for flag in (False, True):
            c = torch.ones(2, requires_grad=flag)
            held = weakref.ref(c)
            out += [text(lambda c=c: swap(c, other)), text(lambda c=c: swap(other, c)), held() is c]
        d = torch.ones(2, requires_grad=True)
        y = d * 2
        swap(d, other)
        out += [text(lambda: y.sum().backward()), d.grad, other.grad]
        return out
    assert facts(subject) == facts(oracle)
    y = (subject.ones(2, requires_grad=True) * 2)
    y.retain_grad()
    with pytest.raises(RuntimeError):
        subject.utils.swap_tensors(y, subject.ones(2))


def test_parameters_that_share_nothing_are_not_searched_for(subject, monkeypatch):
    """The search for views looks at every object that Python has."""
    a, b = subject.nn.Parameter(subject.ones(2)), subject.nn.Parameter(subject.zeros(3))
    monkeypatch.setattr("gc.get_referrers", lambda *objects: pytest.fail("searched"))
    subject.utils.swap_tensors(a, b)
    assert a.shape == (3,) and b.shape == (2,)
