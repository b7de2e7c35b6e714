"""torch.masked.MaskedTensor beside real torch: what is printed, counts, is refused, and gets gradients."""
import copy
import pickle
import warnings
from importlib import import_module

import pytest
from same import same

UNARY = ("abs exp log sqrt neg sin sigmoid floor round sign reciprocal square isnan logit trunc erf nan_to_num relu sort any median unbind "
         "numpy tolist").split()
BINARY = "add sub mul div maximum eq lt ge remainder pow atan2 fmax logaddexp bitwise_and".split()
REDUCTIONS = "sum mean amin amax argmin argmax prod all var std".split()
FORMS = """mt; mt.long(); mt > 2; mt[0]; mt[:, 1:]; mt[0, 2]; mt[0, 1]; mt[torch.tensor([1, 0])]; mt[m]; torch.cat([mt, mt]); torch.stack([mt, mt]); mt.unsqueeze(0)
    mt.view(3, 2); mt.reshape(-1); mt.t(); mt.mT; mt.T; mt.transpose(0, 1); mt[0].expand(2, 3); mt.split(1); mt.chunk(2); mt.flatten(); mt.permute(1, 0); mt.clone()
    mt.detach(); mt.double(); mt.to(torch.int64); mt.half(); mt.softmax(1); torch.where(m, mt, mt * 2); torch.where(d > 2, mt, d); mt.t().contiguous()
    torch.ones_like(mt); torch.zeros_like(mt); mt[0, 0].item(); mt[0, 1].item(); bool(mt[0, 0]); float(mt[0, 0]); mt.clamp(0, 1); mt.clamp(min=1); mt.narrow(1, 0, 2)
    mt.unfold(1, 2, 1); len(mt); mt.clone().copy_(mt); torch.nn.functional.linear(mt, d); masked.sum(mt, 0); mt.cumsum(0); mt.logsumexp(1); mt @ mt.t()
    mt.to_tensor(-1); mt.get_data(); mt.get_mask()
    mt + mt * 2 - mt / 3; 2 - mt; 1 / (mt + 1); d + mt; mt ** 2; -mt; abs(mt); ~(mt > 2); (mt > 2) & (mt < 5); masked_tensor(d, m).add_(1); masked_tensor(d, m).mul_(mt)
    masked_tensor(d, m).sqrt_(); mt.sum(1, keepdim=True); torch.sum(mt, dim=0); torch.add(mt, 1, alpha=2); masked_tensor(d[None] * 1e5, m[None])
    masked_tensor(torch.tensor(1.5), torch.tensor(True)); masked_tensor(torch.tensor(1.5), torch.tensor(False)); masked_tensor(d.long()[0] * 1000, m[0]); copy.deepcopy(mt)
    masked_tensor([1.0], m); masked_tensor(d, [True]); masked_tensor(d, m.float()); masked_tensor(d, m[0]); masked_tensor(d, m[:, :2]); masked_tensor(d.to(torch.complex64), m)
    masked_tensor(d.bfloat16(), m); masked_tensor(mt, m); masked_tensor(d.byte(), m); as_masked_tensor(d, m); masked.is_masked_tensor(mt); masked.is_masked_tensor(d)
    (mt.shape, mt.dtype, mt.layout, mt.requires_grad, mt.dim(), mt.numel(), mt.stride(), mt.is_contiguous(), mt.size(0), mt.is_sparse, mt.is_leaf, mt.is_sparse_coo())
    masked_tensor(d, m, requires_grad=True).requires_grad; masked_tensor(d, m, requires_grad=True); masked_tensor(d > 2, m, requires_grad=True)
    torch.abs_(masked_tensor(-d, m)); torch.neg_(masked_tensor(d, m)); masked_tensor(-d, m).absolute_()"""


def _scope(torch):
    warnings.simplefilter("ignore")
    masked = import_module(f"{torch.__name__}.masked")
    d, m = torch.arange(6.0).reshape(2, 3), torch.tensor([[True, False, True], [False, False, True]])
    return {"torch": torch, "masked": masked, "masked_tensor": masked.masked_tensor, "as_masked_tensor": masked.as_masked_tensor, "d": d, "m": m, "copy": copy,
            "mt": masked.masked_tensor(d, m), "other": masked.masked_tensor(d, ~m), "more": masked.masked_tensor(d + 1, m)}


def _outcome(code, scope):
    try:
        found = eval(code, scope)
    except TypeError as error:
        said = str(error)
        return "TypeError", "" if said.startswith("Multiple dispatch failed") else said  # which names the dispatcher's operator
    except Exception as error:
        return type(error).__name__, str(error)
    return str([repr(x) for x in found] if isinstance(found, (list, tuple)) else repr(found)).replace("torchlike", "torch")


@same
def test_functions(torch):
    scope = _scope(torch)
    codes = [c.strip() for line in FORMS.splitlines() for c in line.split("; ")]
    codes += [f"mt.{name}()" for name in UNARY] + [f"torch.{name}(mt, {x})" for name in BINARY for x in ("more", "2.0", "d + 1", "other")]
    of = {"all": "(mt > 2)"}
    codes += [c for name in REDUCTIONS for c in (f"{of.get(name, 'mt')}.{name}()", f"{of.get(name, 'mt')}.{name}(1)", f"torch.{name}({of.get(name, 'mt')}, dim=0, keepdim=True)",
                                                 f"masked_tensor({'d > 2' if name == 'all' else 'd'}, m & False).{name}()")]
    return {code: _outcome(code, scope) for code in codes}


GRADIENTS = ("x.sum()", "x.mean()", "x.amax()", "x.prod()", "x.var()", "x.sum(1).sum()", "x.exp().sum()", "(x - 1).sqrt().mean()", "(x * x + x).sum()", "x * 2",
             "(x.t() * 2).sum()", "(x.softmax(1) * x).sum()", "x.to_tensor(0).sum()", "x.get_data().sum()", "x.log().sum()", "x.sum() * x.sum()", "x.reshape(-1).sum()",
             "(1 / x).sum()", "(x ** 3).sum()", "torch.cat([x, x]).sum()", "(x * y).sum()", "masked.sum(x)")


@same
def test_gradients(torch):
    scope, found = _scope(torch), {}
    for code in GRADIENTS:
        x, y = (scope["masked_tensor"](scope["d"] + 1, scope["m"], requires_grad=True) for _ in range(2))
        out = eval(code, scope | {"x": x, "y": y})
        out.backward(torch.ones_like(out)) if out.dim() else out.backward()
        found[code] = repr(x.grad), repr(y.grad)
        x.grad = None
        if "y" not in code:
            out = eval(code, scope | {"x": x}).sum()
            found[code, "grad"] = repr(torch.autograd.grad(out, x))
    w = torch.ones(2, 3, requires_grad=True)
    scope["as_masked_tensor"](w * 2, scope["m"]).sum().backward()
    return found, (w.grad.to_tensor(0) if hasattr(w.grad, "to_tensor") else w.grad).tolist()


@same
def test_warnings(torch):
    scope = _scope(torch)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        scope["masked_tensor"](scope["d"], scope["m"])
        scope["masked_tensor"](scope["d"].requires_grad_(), scope["m"])
    return [(w.category.__name__, str(w.message)) for w in said]


def test_pickled():
    import torchlike
    mt = _scope(torchlike)["mt"]
    assert repr(pickle.loads(pickle.dumps(mt))) == repr(mt)


@pytest.mark.parametrize("layout", ["sparse_coo"])
def test_sparse_data_is_refused(layout):
    import torchlike
    scope = _scope(torchlike)
    with pytest.raises(TypeError, match="layout"):
        scope["masked_tensor"](scope["d"].to_sparse(), scope["m"].to_sparse())
