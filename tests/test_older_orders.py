"""Programs from PyTorch's first years: factors before tensors, Variable."""
import warnings

import numpy as np
import pytest

CALLS = ["torch.add(x, 2, 3)", "torch.add(x, 2, y)", "x.add(2, y)", "x.add_(-0.1, y)", "torch.sub(x, 2, y)", "x.sub_(2, y)", "x.addcmul_(0.5, y, y)", "x.addcdiv_(-0.1, y, y + 1)",
         "torch.addcmul(x, 0.5, y, y)",
         "torch.addcdiv(x, 0.5, y, y + 1)",
         "torch.addmm(2, m, 3, m, m)", "m.addmm(2, 3, m, m)", "torch.addmv(2, v, 3, m, v)", "v.addmv_(2, m, m[0])",
         "torch.addr(2, m, 3, v, v)", "m.addr_(2, v, v)",
         "torch.addbmm(2, m, 3, b, b)", "torch.baddbmm(2, b, 3, b, b)",
         "torch.addmm(2, m, m, m)", "torch.ones(2, 2, 2).baddbmm_(2, b, b)", "v.addmv(2, 3, m, v)", "torch.add(x, 2, y, out=torch.empty(3))"]
REFUSED = ["torch.addmm(m, 2, m, m)", "torch.addmv(2, 3, v, m, v)", "m.addr_(v, 2, v)", "torch.addcdiv(0.5, x, y, y)",
           "x.add_(1, 2, 3)", "torch.mul(x, 2, y)", "x.mul_(2, y)", "torch.add(x, 2, y, alpha=3)", "torch.addcmul(x, 1, 2, y, y)"]


def result(torch, call):
    x, y, m = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([4.0, 5.0, 6.0]), torch.tensor([[0.1, 0.7], [0.4, 0.9]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(call, {"torch": torch, "x": x, "y": y, "m": m, "v": torch.tensor([1.0, 2.0]), "b": torch.ones(2, 2, 2)})


@pytest.mark.parametrize("call", CALLS)
def test_factors_before_tensors(subject, oracle, call):
    np.testing.assert_allclose(result(subject, call).numpy(), result(oracle, call).numpy(), rtol=1e-6)


@pytest.mark.parametrize("call", REFUSED)
def test_what_was_never_taken(subject, oracle, call):
    kinds = []
    for torch in (subject, oracle):
        try:
            result(torch, call)
            kinds.append("taken")
        except Exception as error:
            kinds.append(type(error).__name__)
    assert kinds[0] == kinds[1]


def test_every_older_call_warns_where_warnings_are_always(subject, oracle):
    """In torch's words, on the user's line."""
    said = []
    for torch in (subject, oracle):
        torch.set_warn_always(True)
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                names = {"torch": torch, "x": torch.ones(3), "y": torch.ones(3), "m": torch.ones(2, 2), "v": torch.ones(2), "b": torch.ones(2, 2, 2)}
                for call in CALLS:
                    eval(compile(call, __file__, "eval"), names)
                torch.ones(2).add_(2, torch.ones(2))
        finally:
            torch.set_warn_always(False)
        said.append([(w.category, w.filename, str(w.message).partition(" (Triggered")[0]) for w in caught])
    assert said[0] == said[1]
    assert said[0][-1][1] == __file__ and len(said[0]) == len(CALLS) + 1


def test_embedding_bag_with_the_table_first(subject, oracle):
    found = []
    for torch in (subject, oracle):
        table = torch.arange(12.0).reshape(3, 4).requires_grad_()
        with pytest.warns(UserWarning, match="Argument order of nn.functional.embedding_bag was changed"):
            out = torch.nn.functional.embedding_bag(table, torch.tensor([0, 1, 2, 1]), torch.tensor([0, 2]), mode="sum")
        (out * out).sum().backward()
        found.append((out.tolist(), table.grad.tolist()))
    assert found[0] == found[1]


def test_an_early_optimizer(subject, oracle):
    """Adam as PyTorch 0.4 wrote it."""
    def trained(torch):
        p, avg, square = torch.autograd.Variable(torch.tensor([1.0, -2.0]), requires_grad=True), torch.zeros(2), torch.zeros(2)
        for step in range(1, 6):
            p.grad = None
            (p ** 3).sum().backward()
            grad = p.grad.data
            grad.add_(0.01, p.data)
            avg.mul_(0.9).add_(1 - 0.9, grad)
            square.mul_(0.99).addcmul_(1 - 0.99, grad, grad)
            p.data.addcdiv_(-0.1 * (1 - 0.99 ** step) ** 0.5 / (1 - 0.9 ** step), avg, square.sqrt().add_(1e-8))
        return p.data.numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_allclose(trained(subject), trained(oracle), rtol=1e-5)


def test_variable(subject, oracle):
    def facts(torch):
        V, x = torch.autograd.Variable, torch.ones(2, requires_grad=True)
        shared = torch.zeros(2)
        V(shared).add_(1)
        with pytest.warns(UserWarning, match="volatile"):
            V(x, volatile=True)
        refused = []
        for bad in (3, [1]):
            with pytest.raises(TypeError) as error:
                V(bad)
            refused.append(str(error.value))
        return (isinstance(x, V), isinstance(torch.nn.Parameter(x), V), isinstance(3, V), issubclass(torch.Tensor, V), V(x).requires_grad, V(x * 2, True).is_leaf,
                V(x, requires_grad=True).requires_grad, shared.tolist(), V().shape == (0,), refused)
    assert facts(subject) == facts(oracle)
