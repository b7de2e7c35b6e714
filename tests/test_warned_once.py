"""Warnings that PyTorch gives once in a process, wherever the calls are; each time under torch.set_warn_always."""
import warnings

from same import same

CALLS = {
    "meshgrid": lambda t: t.meshgrid(t.arange(2), t.arange(3)),
    "istft": lambda t: t.istft(t.ones(9, 17) + 0j, 16, window=t.hann_window(16), length=900),
    "stft": lambda t: t.stft(t.ones(64), 16, return_complex=True),
    "create_graph": lambda t: (t.ones(1, requires_grad=True) * 2).sum().backward(create_graph=True),
    "nested": lambda t: [t.nested.nested_tensor([t.ones(2)]), t.nested.as_nested_tensor([t.ones(2)]), t.nested.nested_tensor([])],
    "nested views and jagged ones": lambda t: [t.nested.as_nested_tensor(t.ones(2, 3)), t.nested.nested_tensor([t.ones(2)], layout=t.jagged)],
    "complex": lambda t: (t.ones(1) + 1j).float(),
    # a number that a graph's tensor becomes: of float and complex, in lists too
    "numbers": lambda t: [kind(t.tensor(2., requires_grad=True)) for kind in (float, complex)],
    "integers": lambda t: [kind(t.tensor(2., requires_grad=True)) for kind in (int, bool)],
    "list": lambda t: t.tensor([0., t.tensor(2., requires_grad=True)]),
    "lists": lambda t: t.tensor([[t.ones(1, requires_grad=True), 1.], [t.ones(()), t.ones((), requires_grad=True) * 2]]),
    "rows": lambda t: t.ones(1).new_tensor([t.ones(2, requires_grad=True)[:1], t.ones(1, requires_grad=True)]),
    "lists without a graph": lambda t: t.no_grad()(t.tensor)([t.tensor(2., requires_grad=True)]),
}


@same
def test_said_once(torch):
    def said(call):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            call(torch)
        return len(found)
    before = torch.is_warn_always_enabled()
    try:
        torch.set_warn_always(False)
        for call in CALLS.values():
            said(call)  # the first time, unless another test of this process was it
        once = {name: said(call) for name, call in CALLS.items()}
        torch.set_warn_always(True)
        return once, {name: said(call) for name, call in CALLS.items()}
    finally:
        torch.set_warn_always(before)
