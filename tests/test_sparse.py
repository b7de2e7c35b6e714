"""Sparse tensors against real torch: making, printing, arithmetic, products, gradients, errors."""
import warnings

import pytest
from same import caught, error, outcomes, same


def _coo(torch, kind=None):
    """One that is not coalesced."""
    return torch.sparse_coo_tensor([[0, 1, 1, 0], [2, 0, 2, 2]], torch.tensor([3.0, 4.0, 5.0, 6.0], dtype=kind), (2, 3))


def _hybrid(torch):
    return torch.sparse_coo_tensor([[0, 1, 1], [1, 0, 0]], torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), (2, 3, 2))


def _scope(torch):
    s = _coo(torch)
    e = torch.arange(6.0).reshape(2, 3)
    other = torch.sparse_coo_tensor([[1, 0, 1], [0, 2, 0]], [1.0, 2.0, 3.0], (2, 3))
    return {"torch": torch, "s": s, "c": s.coalesce(), "s1": other, "h": _hybrid(torch), "e": e, "d": e.reshape(3, 2) + 1, "r": s.to_sparse_csr(),
            "k": s.to_sparse_csc()}


def _parts(x):
    """A sparse tensor as its parts, anything else as it is."""
    if isinstance(x, (tuple, list)):
        return [_parts(y) for y in x]
    layout = str(getattr(x, "layout", ""))
    if layout == "torch.sparse_coo":
        return layout, tuple(x.shape), x._indices(), x._values(), x.is_coalesced(), x.requires_grad
    if layout in ("torch.sparse_csr", "torch.sparse_bsr"):
        return layout, tuple(x.shape), x.crow_indices(), x.col_indices(), x.values(), x.requires_grad
    if layout in ("torch.sparse_csc", "torch.sparse_bsc"):
        return layout, tuple(x.shape), x.ccol_indices(), x.row_indices(), x.values(), x.requires_grad
    return x


def _evaluated(torch, *expressions):
    return outcomes({**_scope(torch), "parts": _parts}, [f"parts({e})" for e in expressions])


@same
def test_making(torch):
    i, v = torch.tensor([[0, 1], [1, 1]]), torch.ones(2)
    return outcomes({"torch": torch, "i": i, "v": v, "parts": _parts}, [f"parts({e})" for e in (
        "torch.sparse_coo_tensor(i, v)", "torch.sparse_coo_tensor(i, v, (3, 4))", "torch.sparse_coo_tensor((2, 3))", "torch.sparse_coo_tensor(size=(2, 3))",
        "torch.sparse_coo_tensor([[0, 1]], [1.0], (2, 3))", "torch.sparse_coo_tensor([[0.0, 1], [1, 1]], [1.0, 2], (2, 3))",
        "torch.sparse_coo_tensor([[0, 1], [1, 1]], [1.0, 2, 3], (2, 3))", "torch.sparse_coo_tensor([[0, 1], [1, 1]], torch.ones(2, 3), (2, 3, 3))",
        "torch.sparse_coo_tensor([[0, 1], [1, 1]], [1, 2], (2, 3), dtype=torch.float64)", "torch.sparse_coo_tensor(i, v, is_coalesced=True)",
        "torch.sparse.FloatTensor(i, v, torch.Size([2, 3]))", "torch.sparse.FloatTensor(2, 3)", "torch.sparse.FloatTensor()",
        "torch.sparse.LongTensor(i, v.long(), torch.Size([2, 3]))", "torch.sparse_coo_tensor(torch.empty(1, 0), torch.empty(0, 2), (3, 2))",
        "torch.sparse_coo_tensor([[0], [5]], [1.0], (2, 3), check_invariants=True)", "torch.sparse_coo_tensor([[0], [-5]], [1.0], (2, 3), check_invariants=True)",
        "torch.sparse_csr_tensor([0, 1, 2], [0, 1], [1.0, 2.0])", "torch.sparse_csc_tensor([0, 1, 2], [0, 1], [1.0, 2.0], (2, 2))",
        "torch.sparse_csr_tensor(crow_indices=torch.tensor([0, 1]).int(), col_indices=torch.tensor([1]).int(), values=[1.0], size=(1, 3))",
        "torch.sparse_compressed_tensor([0, 1, 2], [0, 1], [1.0, 2.0], (2, 2), layout=torch.sparse_csr)",
        "torch.eye(3).to_sparse()", "torch.eye(3).to_sparse(1)", "torch.eye(3).to_sparse_csr()", "torch.eye(3).to_sparse(layout=torch.sparse_csc)",
        "torch.sparse.spdiags(torch.ones(2, 3), torch.tensor([0, 1]), (3, 3))", "torch.sparse_coo_tensor(i, v, requires_grad=True)")])


@same
def test_legacy_types(torch):
    """Each form of call warns (once in a process); what is no form of theirs is refused."""
    i, v = torch.tensor([[0, 1], [1, 1]]), torch.ones(2)
    s = torch.sparse_coo_tensor(i, v, (3, 4))
    calls = ("torch.sparse.FloatTensor(i, v, torch.Size([3, 4]))", "torch.sparse.DoubleTensor(i, v)", "torch.sparse.FloatTensor(2, 3)", "torch.sparse.FloatTensor(3)",
             "torch.sparse.FloatTensor()", "torch.sparse.FloatTensor(torch.Size([2, 3]))", "torch.sparse.FloatTensor((2, 3))", "torch.sparse.FloatTensor([2, 3])",
             "torch.sparse.FloatTensor(s)", "torch.sparse.FloatTensor(v)", "s.new(2, 3)", "s.new(i, v)", "s.new()", "s.new(torch.Size([2, 3]))", "s.new((2, 3))")
    torch.set_warn_always(True)
    try:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            made = outcomes({"torch": torch, "i": i, "v": v, "s": s, "parts": _parts}, [f"parts({c})" for c in calls])
    finally:
        torch.set_warn_always(False)
    return made, [str(w.message).split("(Triggered")[0].strip() for w in seen if "SparseTensor" in str(w.message)]


@same
def test_without_elements(torch):
    empty = "torch.sparse_coo_tensor(torch.zeros(1, 0).long(), torch.zeros(0, 2, 0), (3, 2, 0))"
    return _evaluated(torch, f"torch.zeros(3, 2, 0) + {empty}", f"torch.zeros(3, 2, 0).sparse_mask({empty})", f"({empty} * torch.zeros(3, 2, 0))",
                      "torch.zeros(3, 0).to_sparse(1)", "torch.zeros(2, 3).to_sparse() + torch.ones(2, 3).to_sparse(1)",
                      "torch.sub(torch.zeros(2, 3).to_sparse(), torch.ones(2, 3).to_sparse(1), alpha=3)", "torch.ones(2, 3).to_sparse(1) + torch.zeros(2, 3).to_sparse()",
                      "torch.sparse.spdiags(torch.ones(0, 3), torch.zeros(0, dtype=torch.int64), (3, 3))", "c * torch.tensor(2.0).to_sparse()")


@same
def test_truth_slices_and_names(torch):
    one = "torch.sparse_coo_tensor([[0]], [{}], (1,))"
    return _evaluated(torch, "bool(s)", f"bool({one.format(0.0)})", f"{one.format(2.0)}.is_nonzero()", f"torch.is_nonzero({one.format(0.0)})", "s.is_nonzero()",
                      "c.narrow_copy(0, 0, 1)", "c.narrow_copy(1, 1, 2)", "torch.narrow_copy(c, 0, 1, 1)", "c.narrow_copy(0, 1, 2)", "c.narrow_copy(0, -1, 1)",
                      "c.permute(dims=(1, 0))", "torch.permute(c, dims=(1, 0))", "torch.permute(c, (1, 0))", "c.permute([1, 0])")


@same
def test_facts(torch):
    return _evaluated(torch, *(f"{t}.{f}" for t in "schre" for f in (
        "is_sparse", "is_sparse_csr", "layout", "_nnz()", "sparse_dim()", "dense_dim()", "is_coalesced()", "shape", "dtype", "device.type", "dim()", "numel()",
        "size(0)", "indices()", "values()", "_indices()", "_values()", "crow_indices()", "col_indices()", "ccol_indices()", "to_dense()", "is_leaf", "type()",
        "requires_grad", "grad_fn", "coalesce()", "item()", "numpy()", "is_floating_point()", "detach()", "clone()", "double()", "int()",
        "to(torch.float64)", "element_size()", "is_same_size(c)", "to_sparse()")), "len(s)", "isinstance(s, torch.sparse.FloatTensor)",
        "isinstance(s, torch.FloatTensor)", "isinstance(s, torch.Tensor)", "type(s).__name__", "c.coalesce() is c", "s.float() is s", "s.cpu() is s",
        "s.to_sparse() is s", "e.to_dense() is e", "torch.clone(s)", "torch.detach(s)", "torch.result_type(s, 2.5)", "torch.dsmm(s, d)",
                      "s.clone().t_()", "c.new(s._indices(), s._values(), s.size())",
                      "torch.vstack([c, c])", "s.abs_()", "torch.argwhere(c)")


@same
def test_printing(torch):
    scope = _scope(torch)
    v = torch.ones(2, requires_grad=True)
    i = [[0, 1], [1, 1]]
    more = [torch.sparse_coo_tensor(i, v, (2, 2)), torch.sparse_coo_tensor(i, v, (2, 2)).coalesce(), torch.sparse_coo_tensor(i, v, (2, 2)) * 2,
            torch.sparse_coo_tensor(i, [1.0, 2.0], (2, 2), requires_grad=True), torch.sparse_coo_tensor(size=(2, 3), dtype=torch.float64),
            torch.eye(40).to_sparse(), torch.eye(1200).to_sparse(), torch.eye(3).half().to_sparse_csr(), torch.sparse_coo_tensor(i, v, (2, 2)).to_dense(),
            torch.nn.Parameter(_coo(torch)), torch.eye(30).to_sparse_csc(), torch.eye(3).bool().to_sparse()]
    return [repr(scope[n]) for n in "schrk"], [repr(x) for x in more], str(scope["s"]), f"{scope['s']}"


@same
def test_arithmetic(torch):
    return _evaluated(torch, "s + s", "s + s1", "s1 + s", "c + s1", "c + c", "e + s", "s + e", "e - c", "c - s1", "c - e", "s * 2", "2 * s", "s / 2", "c // 2",
                      "s * s1", "s1 * s", "s * c", "c * c", "h * h", "h + h", "s * e", "e * s", "c * torch.ones(3)", "c * torch.tensor(2.0)", "c / c", "-s",
                      "c + 1", "c.add(c, alpha=2)", "e.add(c, alpha=3)", "e.sub(c)", "c.double() + c", "c.long() * 2.5", "c.long() + c", "e.double() + c",
                      "torch.add(s, s1)", "torch.mul(s, 3)", "c ** 2", "c.pow(3)", "c.abs()", "s.abs()", "c.sqrt()", "c.sin()", "torch.relu(-s)", "c.neg()",
                      "torch.log1p(c)", "torch.tanh(c)", "torch.sign(c)", "torch.isnan(c)", "c.square()", "c.exp()", "c.sigmoid()", "c == c", "c > 0",
                      "r + r", "r * r", "r * 2", "r * e", "r - r", "r / 2", "r.abs()", "r.sin()", "h * 2", "h - h", "c.sum()", "c.sum(0)", "c.sum(1, keepdim=True)",
                      "c.sum((0, 1))", "h.sum(2)", "h.sum()", "r.sum()", "r.sum(1, keepdim=True)", "r.sum(1)", "c.norm()", "c.any()", "c.all()", "c.max()", "c.mean()",
                      "c.sum(dtype=torch.float64)")


@same
def test_in_place(torch):
    scope = _scope(torch)
    s, c, e = scope["s"], scope["c"], scope["e"]
    view = c.values()
    c.mul_(2)
    made = [_parts(s.add_(s)), _parts(c.clone().coalesce()), e.add_(c).clone(), e.sub_(c, alpha=2).clone(), _parts(c.div_(4).clone().coalesce()),
            _parts(c.neg_().clone().coalesce()), caught(c.add_, e), e.mul_(c).clone()]
    e += s
    assert view.shape == (3,)
    s._values().mul_(10)
    made += [e, _parts(s), _parts(s.zero_()), _parts(s.copy_(scope["s1"])), caught(e.copy_, s)]
    leaf = _coo(torch).requires_grad_()
    return made, caught(leaf.mul_, 2), caught(leaf.zero_)


@same
def test_products(torch):
    return _evaluated(torch, "s @ d", "c @ d", "d @ c", "torch.mm(c, d)", "torch.spmm(s, d)", "torch.sparse.mm(s, d)", "torch.sparse.mm(d, c)", "torch.matmul(s, d)",
                      "d.mm(c)", "d.matmul(c)", "c.mm(d)", "c @ c.t()", "torch.sparse.mm(c, c.t())", "s @ torch.ones(3)", "torch.ones(2) @ s", "torch.mv(c, torch.ones(3))",
                      "c.mv(torch.ones(3))", "torch.addmm(torch.ones(2, 2), c, d, beta=2, alpha=3)", "torch.sparse.addmm(torch.ones(2, 2), c, d, beta=2, alpha=3)",
                      "torch.addmm(torch.ones(2, 2), r, d)", "torch.bmm(torch.stack([c, s]), torch.ones(2, 3, 4))", "r @ d", "d @ r", "k @ d", "d @ k",
                      "r @ torch.ones(3)", "(r @ r.t()).to_dense()", "c @ torch.ones(2, 2)", "c @ torch.ones(3, 2).double()", "torch.spmm(c, torch.ones(3, 1, 1))", "h @ d",
                      "c.mm(c)", "torch.mm(c.double(), d.double())", "torch.sparse.sampled_addmm(r, torch.ones(2, 2), torch.ones(2, 3), beta=0.5)")


@same
def test_shapes(torch):
    return _evaluated(torch, "s.t()", "c.t().coalesce()", "c.transpose(0, 1)", "c.permute(1, 0)", "h.transpose(0, 1)", "h.transpose(0, 2)", "h.permute(1, 0, 2)", "c.T",
                      "c.mT", "r.t()", "k.t()", "r.transpose(0, 1)", "c[0]", "s[1]", "c[0, 2]", "h[1]", "h[1, 0]", "r[0]", "c[5]", "c[0:1]", "c.select(1, 2)", "c.unbind()",
                      "c.unsqueeze(0)", "h.unsqueeze(3)", "c.index_select(0, torch.tensor([1, 0, 1]))", "s.index_select(1, torch.tensor([0, 2]))",
                      "torch.cat([c, s])", "torch.cat([c, c], 1)", "torch.cat([h, h], 2)", "torch.cat([c, e])", "torch.stack([c, s1])", "torch.zeros_like(c)",
                      "torch.empty_like(s)", "c.new_zeros(2)", "c.view(3, 2)", "c.reshape(6)", "c.squeeze()", "c.expand(2, 3)", "e.sparse_mask(s1)", "c.sparse_mask(s1)",
                      "r.to_sparse_csc()", "k.to_sparse_csr()", "k.to_sparse()", "r.to_sparse()", "torch.ones_like(c)", "torch.rand_like(c)", "c.fill_(1)", "c.swapaxes(0, 1)",
                      "c.movedim(0, 1)", "list(c)", "c.contiguous()", "c.tolist()", "c.data_ptr()", "c.storage()", "torch.clamp(c, 0, 1)", "torch.equal(c, c)",
                      "torch.nn.functional.dropout(c, 0.5)", "c.fill_diagonal_(1)", "c.nonzero()", "torch.topk(c, 1)", "c.diagonal()")


@same
def test_sums_and_softmax(torch):
    return _evaluated(torch, "torch.sparse.sum(s)", "torch.sparse.sum(s, 0)", "torch.sparse.sum(c, -1)", "torch.sparse.sum(c, (0, 1))", "torch.sparse.sum(h, 2)",
                      "torch.sparse.sum(h, (0, 2))", "torch.sparse.sum(h, (0, 1))", "torch.sparse.sum(c.int())", "torch.sparse.softmax(s, 1)", "torch.sparse.softmax(s, 0)",
                      "torch.sparse.log_softmax(s, 1)", "torch.sparse.softmax(h, 2)", "torch.sparse.softmax(h, 0)", "torch.sparse.softmax(s, 1, dtype=torch.float64)",
                      "torch.sparse.softmax(e, 1)", "torch.sparse.sum(r)")


_FUNCTIONS = ("torch.sparse.mm(s, d)", "s @ d", "s.to_dense()", "s.coalesce().values()", "s * 3", "(s + s.coalesce())", "s * s", "s * e", "e + s", "s.sum()",
              "torch.sparse.sum(s)", "torch.sparse.sum(s, 0).to_dense()", "torch.sparse.softmax(s, 1)", "torch.sparse.log_softmax(s, 1)", "s.t()", "s / 2", "s.coalesce().abs()",
              "torch.sparse.mm(s, s.t())", "s.to_sparse_csr().to_dense()", "d.t() @ s.t()", "torch.sparse.addmm(w, s, d)")


@pytest.mark.parametrize("expression", _FUNCTIONS)
def test_gradients(expression, oracle, subject):
    """To the values, and to strided operands; torch lacks some of them."""
    @same
    def run(torch):
        v = torch.tensor([3.0, 4.0, 5.0, 6.0], dtype=torch.float64, requires_grad=True)
        d = (torch.arange(6.0, dtype=torch.float64).reshape(3, 2) + 1).requires_grad_()
        e = torch.arange(6.0, dtype=torch.float64).reshape(2, 3).requires_grad_()
        w = torch.ones(2, 2, dtype=torch.float64, requires_grad=True)
        s = torch.sparse_coo_tensor([[0, 1, 1, 0], [2, 0, 2, 2]], v, (2, 3))
        made = eval(expression, {"torch": torch, "s": s, "d": d, "e": e, "w": w})
        made = made if str(made.layout) == "torch.strided" else made.to_dense()
        (made * torch.arange(1.0, made.numel() + 1, dtype=torch.float64).reshape(made.shape)).sum().backward()
        return made.detach(), v.grad, d.grad, e.grad, w.grad
    run(oracle, subject)


@same
def test_leaf_gradients(torch):
    s = _coo(torch).coalesce().detach().requires_grad_()
    d = torch.arange(6.0).reshape(3, 2).requires_grad_()
    torch.sparse.mm(s, d).sum().backward()
    first = repr(s.grad)
    s.to_dense().sum().backward()
    (g,) = torch.autograd.grad(torch.sparse.mm(s, d).sum(), s)
    before = repr(s.grad)
    s.grad.zero_()
    seen = s.grad.to_dense(), _parts(g), s.is_leaf, s.grad_fn, d.grad
    s.grad = None
    return *seen, s.grad, first, before


def test_double_backward(oracle, subject):
    """torch itself has none through sparse products: the strided product is the specification."""
    found = []
    for torch, sparse in ((oracle, False), (subject, True)):
        v = torch.tensor([3.0, 4.0], requires_grad=True)
        d = torch.ones(2, 2, requires_grad=True)
        i = torch.tensor([[0, 1], [1, 0]])
        a = torch.sparse_coo_tensor(i, v, (2, 2)) if sparse else torch.zeros(2, 2).index_put((i[0], i[1]), v)
        made = (torch.sparse.mm(a, d) if sparse else a @ d).pow(3).sum()
        (g,) = torch.autograd.grad(made, v, create_graph=True)
        g.pow(2).sum().backward()
        found.append((v.grad.tolist(), d.grad.tolist()))
    assert found[0] == found[1]


@same
def test_out_of_range_is_never_a_number(torch):
    s = torch.sparse_coo_tensor([[0], [5]], [1.0], (2, 3))
    return caught(torch.mm, s, torch.ones(3, 1)), caught(torch.sparse_coo_tensor, [[0], [5]], [1.0], (2, 3), check_invariants=True)


def test_out_of_range_to_dense(subject):
    s = subject.sparse_coo_tensor([[0], [5]], [1.0], (2, 3))
    with pytest.raises(RuntimeError, match="for dim 1, size is 3 but found index 5"):
        s.to_dense()


@same
def test_custom_function(torch):
    """pyGAT's product: sparse tensors saved for backward."""
    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, indices, values, shape, b):
            a = torch.sparse_coo_tensor(indices, values, shape)
            ctx.save_for_backward(a, b)
            ctx.n = shape[0]
            return torch.matmul(a, b)

        @staticmethod
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            dense = g.matmul(b.t())
            edges = a._indices()[0, :] * ctx.n + a._indices()[1, :]
            return None, dense.view(-1)[edges], None, a.t().matmul(g)
    v = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    b = torch.arange(6.0).reshape(3, 2).requires_grad_()
    out = Product.apply(torch.tensor([[0, 1, 2], [2, 0, 1]]), v, torch.Size([3, 3]), b)
    out.pow(2).sum().backward()
    return out.detach(), v.grad, b.grad


@same
def test_module_with_sparse_buffer(torch):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("adj", _coo(torch).coalesce())
            self.lin = torch.nn.Linear(3, 3)

        def forward(self, x):
            return torch.spmm(self.adj, self.lin(x))
    net = Net()
    state = net.state_dict()
    net.double()
    out = net(torch.ones(3, 3, dtype=torch.float64))
    net.float().load_state_dict(state)
    return [str(v.layout) for v in state.values()], out, _parts(net.adj), [n for n, _ in net.named_buffers()]


@same
def test_copies(torch):
    import copy
    import pickle
    s = _coo(torch)
    a, b = copy.deepcopy(s), copy.copy(s)
    return _parts(a), _parts(b), _parts(pickle.loads(pickle.dumps(s))), _parts(pickle.loads(pickle.dumps(s.to_sparse_csr())))


@same
def test_products_that_combine_rows_otherwise(torch):
    """`torch.sparse.mm(csr, dense, reduce)`; one row has no entries."""
    made = []
    for reduce in ("mean", "amax", "amin", "max", "min", "sum"):
        a = torch.tensor([[1., 2, 0], [0, 0, 0], [3., -4, 5]]).to_sparse_csr().requires_grad_()
        b = torch.arange(6.).view(3, 2).requires_grad_()
        out = torch.sparse.mm(a, b, reduce)
        out.sum().backward()
        made += [out, b.grad, a.grad.values()]
    return made, caught(torch.sparse.mm, a.detach(), b.detach(), "wrong"), caught(torch.sparse.mm, a.detach(), torch.ones(2, 2), "mean")


@same
def test_out_and_in_place(torch):
    s, o, d = torch.eye(3).to_sparse(), torch.zeros(3, 3).to_sparse(), torch.zeros(3, 2)
    made = [torch.tanh(s, out=o) is o, o.to_dense(), torch.add(s, s, out=o).to_dense(), torch.neg(s, out=o).to_dense(), torch.mm(s, torch.ones(3, 2), out=d), d]
    whole = s.int()
    refused = [caught(whole.sin_), caught(whole.mul_, 2.5), caught(lambda: torch.tanh(s, out=o.int()))]
    resized = torch.ones(2, 3).to_sparse().sparse_resize_((4, 4), 2, 0)
    return made, refused, resized.shape, resized.to_dense(), torch.conj_physical((s + s).to(torch.complex64)).to_dense()


@same
def test_resizing(torch):
    eye, wide, hybrid, rows = torch.eye(3).to_sparse(), torch.zeros(2, 4).to_sparse(), torch.ones(2, 2, 2).to_sparse(1), torch.eye(3).to_sparse_csr()
    names = {"torch": torch, "eye": eye, "wide": wide, "hybrid": hybrid, "rows": rows}
    found = outcomes(names, [
        "eye.clone().resize_as_(wide)", "wide.clone().resize_as_(eye)", "eye.clone().resize_as_(torch.zeros(4, 5).to_sparse())", "eye.clone().resize_as_(rows)",
        "eye.clone().resize_as_(torch.zeros(2, 2))", "torch.resize_as_(eye.clone(), torch.zeros(3, 4).to_sparse())", "eye.clone().requires_grad_().resize_as_(eye)",
        "hybrid.clone().resize_as_(torch.zeros(2, 1, 1).to_sparse(1))", "hybrid.clone().resize_as_(torch.zeros(2, 2, 2).to_sparse(2))",
        "eye.clone().resize_as_sparse_(torch.zeros(4, 4).to_sparse())", "eye.clone().resize_as_(eye, memory_format=torch.contiguous_format)",
        "rows.clone().resize_as_(torch.ones(4, 5).to_sparse_csr())", "rows.clone().resize_as_(torch.zeros(2, 3).to_sparse_csr()).crow_indices()",
        "rows.clone().resize_as_(torch.zeros(3, 2).to_sparse_csr())", "rows.clone().resize_((5,))", "rows.clone().resize_as_(eye)"])
    kept = eye.clone()
    return found, kept.resize_as_(torch.zeros(5, 5).to_sparse()) is kept


@same
def test_gradients_of_sums_of_what_was_dense(torch):
    def of(f):
        x = torch.tensor([[0.0, 2.0], [3.0, 0.0]], requires_grad=True)
        f(x).backward()
        return x.grad

    def changed(x):
        s = x.to_sparse()
        s._values().mul_(2)
        return s.sum()
    x = torch.eye(3, requires_grad=True)
    g, = torch.autograd.grad(x.to_sparse().sum() ** 2, x, create_graph=True)
    return (of(lambda x: x.to_sparse().sum()), of(lambda x: x.to_sparse_csr().sum()), of(lambda x: x.to_sparse().to_sparse_csc().sum(dtype=torch.float64).float()),
            of(lambda x: torch.sparse.sum(x.to_sparse())), of(lambda x: x.to_sparse(1).sum()), of(lambda x: torch.sum(x.to_sparse())), changed(x.detach()), g,
            torch.autograd.grad(g.sum(), x))


@same
def test_methods_asked_of_the_class(torch):
    s, c, T = torch.eye(3).to_sparse(), torch.eye(3).to_sparse_csr(), torch.Tensor
    found = [T.crow_indices(c), T.col_indices(c), T.values(c), T.to_dense(c), T.to_dense(s), T.coalesce(s).indices(), T._nnz(s), T.to_sparse(c).is_coalesced()]
    return found, T.sparse_dim(c), T.dense_dim(s), caught(T.crow_indices, s), caught(T.indices, c), caught(T.crow_indices, torch.ones(2, 2)), torch.add(
        c, torch.ones(3, 3), alpha=2), torch.conj_physical(s, out=torch.zeros(3, 3).to_sparse()).to_dense()


@same
def test_like_in_another_layout_and_sums_with_strided(torch):
    s, c = torch.eye(3).to_sparse(), torch.eye(3).to_sparse_csr()
    likes = [str(torch.zeros_like(s, layout=torch.sparse_csr).layout), str(torch.zeros_like(c, layout=torch.sparse_coo).layout), c + torch.ones(3, 3)]
    return likes, caught(lambda: torch.zeros_like(s, memory_format=torch.contiguous_format)), caught(lambda: c + torch.ones(3))


def test_factories_that_fill_memory_refuse_sparse_layouts(oracle, subject):
    calls = ["arange(3, **s)", "linspace(0, 1, 3, **s)", "logspace(0, 1, 3, **s)", "randint(3, (2,), **s)", "randperm(3, **s)", "eye(3, **s)", "range(0, 3, **s)",
             "rand(3, **s)", "normal(0., 1., (3,), **s)", "hann_window(3, **s)", "kaiser_window(3, **s)", "fft.fftfreq(3, **s)", "tril_indices(3, 3, **s)",
             "empty_strided((3,), (1,), **s)", "zeros(3, **s)"]
    for layout in ("sparse_coo", "strided"):
        def kinds(torch, layout=layout):
            names = {n: getattr(torch, n) for n in ("arange", "linspace", "logspace", "randint", "randperm", "eye", "range", "rand", "normal", "hann_window",
                                                    "kaiser_window", "fft", "tril_indices", "empty_strided", "zeros")}
            found = outcomes(names | {"s": {"layout": getattr(torch, layout)}}, calls)
            return {call: x if isinstance(x, str) else "made" for call, x in found.items()}
        assert kinds(subject) == kinds(oracle)


def test_dense_programs_do_not_load_it():
    import subprocess
    import sys
    code = "import torchlike as torch, sys; torch.ones(2).sum().item(); assert not [m for m in sys.modules if m.startswith('torchlike.sparse')]"
    subprocess.run([sys.executable, "-c", code], check=True, cwd="..")


@same
def test_compressed_matrices_in_sums_of_products(torch):
    m = torch.tensor([[1., 0., 2.], [0., 0., 3.]])
    b, v, found = torch.ones(2, requires_grad=True), torch.tensor([1., 2., 3.], requires_grad=True), []
    for c in (m.to_sparse_csr(), m.to_sparse_csc()):
        y = torch.addmv(b, c, v, beta=2, alpha=3)
        found += [y, torch.autograd.grad(y.sum(), (b, v)), torch.addmv(torch.full((2,), float("nan")), c, v.detach(), beta=0), torch.ones(2).addmv_(c, v.detach())]
        found += [torch.ones(2, 2).addmm_(c, torch.ones(3, 2), beta=0.5), torch.addmv(torch.ones(2), c, v.detach(), out=torch.zeros(2))]
        found += [error(torch.addmv, b, c, b), error(torch.addmv, b.double(), c, v)]
    return found, error(torch.addmv, b, m.to_sparse(), v)


@same
def test_slices_of_compressed_matrices_are_coalesced(torch):
    c = torch.tensor([[1., 0., 2.], [0., 0., 3.]]).to_sparse_csr()
    return [(s.is_coalesced(), s.indices(), s.values()) for s in (c[0], c.select(0, 1), c.select(1, 2), c.to_sparse_csc().select(1, 0))]


@same
def test_functions_of_coordinates_refuse_compressed_matrices(torch):
    c = torch.eye(2).to_sparse_csr()
    return error(c.coalesce), error(c.indices), error(c.isnan), error(torch.eye(2).to_sparse_csc().crow_indices)


@same
def test_sparse_gradients_to_begin_with(torch):
    p, found = torch.ones(3, 2, requires_grad=True), []
    g = torch.sparse_coo_tensor(torch.tensor([[0, 2]]), torch.ones(2, 2), (3, 2))
    for gradient in (g, g, torch.ones(3, 2)):
        p.backward(gradient)
        found.append(p.grad.to_dense() if p.grad.is_sparse else p.grad.clone())
    (p * 2).backward(g)
    return found, p.grad, caught(p.backward, torch.sparse_coo_tensor(torch.tensor([[0]]), torch.ones(1, 2), (4, 2)))


@same
def test_a_coalesced_tensor_has_entries_of_its_own(torch):
    s = torch.sparse_coo_tensor(torch.tensor([[0, 1, 1], [2, 0, 2]]), torch.tensor([16.0, 32.0, 64.0]), (2, 3))
    t = s.coalesce()
    t._values().mul_(0.5)
    return s.to_dense(), t.to_dense()


@same(raises="RuntimeError")
def test_sizes_that_overflow(torch):
    return torch.sparse_coo_tensor(torch.tensor([[0], [0]]), torch.ones(1), (2**62, 2**62))


@same
def test_writes_asked_of_the_class(torch):
    """In place, by functions that have a form for sparse tensors."""
    return _evaluated(torch, *(f"torch.{n}({x}.clone())" for n in ("Tensor.asin_", "Tensor.erf_", "Tensor.abs_", "asin_", "erf_")
                               for x in ("s", "(c * 0.1)", "(c * 0.1).long()", "(r * 0.1)")))


def _said(function, *args, **kwargs):
    """The parts of what it returns, or how it is refused, in words."""
    try:
        return _parts(function(*args, **kwargs))
    except Exception as refused:
        return type(refused).__name__, str(refused)


@same
def test_what_is_checked_of_compressed_parts(torch):
    """Every rule that `check_invariants=True` asks for."""
    v, wide = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([[1.0, 2.0]] * 3)
    parts = [([0, 1, 3], [1, 0, 1], v, (2, 2)), ([1, 1, 3], [1, 0, 1], v, (2, 2)), ([0, 1, 2], [1, 0, 1], v, (2, 2)), ([0, -1, 3], [1, 0, 1], v, (2, 2)),
             ([0, 3, 3], [0, 1, 1], v, (2, 2)), ([0, 1, 3], [1, 0, 2], v, (2, 2)), ([0, 1, 3], [1, -1, 1], v, (2, 2)), ([0, 1, 3], [1, 1, 0], v, (2, 2)),
             ([0, 1, 3], [1, 1, 1], v, (2, 2)), ([0, 1, 3, 3], [1, 0, 1], v, (2, 2)), ([0, 1, 3], [1, 0], v, (2, 2)), ([0, 1, 3], [1, 0, 1], v[:2], (2, 2)),
             ([0, 1, 3], [1, 0, 1], v, (2,)), ([0, 1, 3], [1, 0, 1], v, (2, 2, 2)), ([0, 1, 3], [1, 0, 1], wide, (2, 2)), ([0, 1, 3], [1, 0, 1], wide, (2, 2, 2)),
             ([0.0, 1, 3], [1, 0, 1], v, (2, 2)), ([[0, 1, 3]], [1, 0, 1], v, (2, 2)), ([0, 1, 3], [1, 0, 1], v[0], (2, 2)), (0, [1, 0, 1], v, (2, 2))]
    found = []
    for a, b, values, size in parts:
        a, b = torch.tensor(a), torch.tensor(b)
        for make, layout in ((torch.sparse_csr_tensor, torch.sparse_csr), (torch.sparse_csc_tensor, torch.sparse_csc)):
            found.append(_said(make, a, b, values, size, check_invariants=True))
            found.append(_said(torch._validate_sparse_compressed_tensor_args, a, b, values, size, layout))
    return found


@same
def test_what_is_checked_of_coordinates(torch):
    """Places within the shape, and in order where they are called coalesced."""
    v = torch.tensor([1.0, 2.0])
    return [(_said(torch.sparse_coo_tensor, torch.tensor(i), v, (2, 2), check_invariants=True, is_coalesced=c),
             _said(torch._validate_sparse_coo_tensor_args, torch.tensor(i), v, (2, 2)))
            for i in ([[0, 1], [1, 0]], [[1, 0], [1, 0]], [[0, 0], [1, 1]], [[0, -1], [1, 0]], [[0, 2], [1, 0]]) for c in (None, False, True)]


@same
def test_refused_shapes(torch):
    """Where the number of sparse dimensions differs, dimensions come twice, or products need other sizes; and dense dimensions are broadcast."""
    programs = ["torch.cat([h, h.to_dense().to_sparse(1)])", "torch.cat([s, h])", "h.permute(1, 1, 0)", "h.permute(0, 2, 1)",
                      "s * e[:1].to_sparse()", "h * e.to_sparse()", "h * h.to_dense()[:, :, :1].to_sparse(2)", "h.to_dense().to_sparse(1) * h",
                      "s.new_zeros((2, 2), layout=torch.strided)"]
    return [_said(eval, p, _scope(torch)) for p in programs]


@same
def test_diagonals_refused(torch):
    """spdiags asks for a matrix, int64 offsets and a sparse layout."""
    ones, o = torch.ones(2, 3), torch.tensor([0, 1])
    calls = [(ones, o, (3, 3)), (ones[0], o[0], (3, 3)), (ones, o, (3, 3, 3)), (ones, o.float(), (3, 3)), (ones[None], o, (3, 3)), (ones, o[None], (3, 3)),
             (ones, o, (3, 3), torch.strided), (ones, o, (3, 3), torch.sparse_bsr), (ones, o * 0, (3, 3)), (ones, o[:1], (3, 3))]
    return [_said(torch.sparse.spdiags, *args) for args in calls]


@same
def test_sums_of_small_integers(torch):
    """They are of 64 bits, as those of strided integers are; torch.sparse.sum keeps the type where its result is sparse. A sum with nothing sparse left is strided."""
    found = []
    for kind in (torch.int8, torch.uint8, torch.int32, torch.bool, torch.float32):
        x = torch.tensor([[0, 100, 100], [100, 0, 0]]).to(kind).to_sparse()
        found += [torch.sum(x, 0), torch.sum(x, 1, keepdim=True), torch.sum(x, (0, 1), keepdim=True), torch.sum(x, (0, 1)), torch.sum(x, 1, dtype=torch.float64),
                  torch.sparse.sum(x), torch.sparse.sum(x, 0), torch.sparse.sum(x, (0, 1)), torch.sparse.sum(x, 0, dtype=torch.int16)]
        if kind is not torch.bool:
            found += [torch.sum(x.to_sparse_csr(), 1, keepdim=True), torch.sum(x.to_sparse_csr(), (0, 1), keepdim=True)]
    return _parts(found), [str(y.dtype) for y in found]


@same
def test_products_with_strided_tensors_of_more_dimensions(torch):
    found = []
    for x in (_coo(torch), _coo(torch).coalesce(), _hybrid(torch)):
        for lead in ((4,), (1,), (2, 1), (0,)):
            e = torch.arange(1.0, 1 + torch.Size((*lead, *x.shape)).numel()).reshape(*lead, *x.shape)
            found += [(x.coalesce() * e).to_dense(), (e * x).shape, (x * e).sparse_dim()]
    return found


def test_gradients_of_such_products(subject):
    """torch raises."""
    x = _coo(subject).coalesce().requires_grad_()
    weights = subject.arange(18.0).reshape(3, 2, 3)
    (x * weights).to_dense().sum().backward()
    assert (x.grad.to_dense() == weights.sum(0) * (x.detach().to_dense() != 0)).all()


SMALL = """(s * z).to_dense(); (z * s).to_dense(); (torch.tensor(3).to_sparse() * s).dtype; r.new_zeros(3, 5); r.new_zeros((2, 3, 5)); c.new_zeros(3, 5, dtype=torch.int64)
r.new_empty((2, 2)).shape; torch.zeros_like(b, layout=torch.sparse_bsc); torch.zeros_like(b, layout=torch.sparse_bsr); torch.sparse.sampled_addmm(r, m, m.t(), out=r.clone())
torch.sparse.sampled_addmm(r, m, m.t(), alpha=2, out=torch.zeros(4, 4).to_sparse_csr())"""
REFUSED = """torch.sparse.sampled_addmm(r, m, m.t(), out=torch.zeros(4, 4)); torch.sparse.sampled_addmm(r, m, m.t(), out=r.double()); torch.sparse.sampled_addmm(c, m, m.t())
torch.sparse.sampled_addmm(r, m.double(), m.t()); torch.sparse.sampled_addmm(r, m, m); torch.sparse.sampled_addmm(r, m[0], m.t()); torch.sparse.sampled_addmm(r, s, m.t())
torch.sparse.sampled_addmm(r, m[:2], m.t()); torch.sparse.sampled_addmm(r, m, m.t()[:, :2]); b.new_zeros(4, 4)"""


def small(torch):
    d = torch.eye(4)
    return {"torch": torch, "s": d.to_sparse(), "z": torch.tensor(2.0).to_sparse(), "r": d.to_sparse_csr(), "c": d.to_sparse_csc(), "b": d.to_sparse_bsr((2, 2)),
            "m": torch.arange(8.0).view(4, 2)}


@pytest.mark.parametrize("line", [x.strip() for x in SMALL.replace("\n", ";").split(";")])
def test_factories_and_out_of_sparse_tensors(oracle, subject, line):
    ours, theirs = (eval(line, small(torch)) for torch in (subject, oracle))
    assert str(ours) == str(theirs)
    assert str(getattr(ours, "layout", "")) == str(getattr(theirs, "layout", ""))


@pytest.mark.parametrize("line", [x.strip() for x in REFUSED.replace("\n", ";").split(";")])
def test_words_about_sparse_arguments(oracle, subject, line):
    def words(torch):
        with pytest.raises(RuntimeError) as found:
            eval(line, small(torch))
        return str(found.value)
    assert words(subject) == words(oracle)


@same
def test_rows_that_go_take_their_entries_along(torch):
    found = []
    for size in ((4, 5), (1, 5), (1, 4), (2, 4), (0, 4), (3, 4)):
        a = torch.tensor([[1.0, 2, 0, 3], [0, 4, 5, 0], [6, 0, 0, 7]]).to_sparse_csr()
        found.append((a.resize_(size), a.to_dense() if size[0] > 1 else 0))
    a, b = torch.eye(3).to_sparse_csr(), torch.ones(2, 3)
    return [_parts(x[0]) for x in found], error(torch.add, a, b.to_sparse_csr()), error(torch.add, a, b), [str(e) for e in (caught(torch.add, a, b.to_sparse_csr()),)]


@same
def test_adjoints_and_views(torch):
    found = []
    for made in (lambda x: x.to_sparse(), lambda x: x.to_sparse_csr(), lambda x: x.to_sparse_csc()):
        a = made(torch.tensor([[1 + 2j, 0, 3j], [0, 4, 0]]))
        found += [_parts(a.adjoint()), _parts(a.H), a.t()._is_view(), a.transpose(0, 1)._is_view(), a.mT._is_view(), a.select(0, 1)._is_view(), a._is_view(),
                  a.detach()._is_view(), (a * 2)._is_view()]
    return found


@same
def test_products_that_stay_sparse(torch):
    i = torch.sparse_coo_tensor([[0, 1, 1], [1, 0, 0]], [1.0, 2, 3], (2, 3))
    b, found = torch.arange(12.0).reshape(4, 3), []
    for places in ([[0, 0], [1, 3]], [[1, 1, 0, 1], [3, 1, 2, 3]], [[], []]):
        a = torch.sparse_coo_tensor(torch.tensor(places, dtype=torch.int64), torch.arange(1.0, len(places[0]) + 1), (2, 4))
        found += [torch.sspaddmm(i, a, b), i.coalesce().sspaddmm(a, b, beta=2, alpha=0.5), torch.smm(a, b), a.smm(b)] + ([torch.hspmm(a, b)] if places[0] else [])
    refused = [str(caught(torch.sspaddmm, i, *args)) for args in ((a, b[:3]), (a, b[:, :2]), (a, b.double()), (a, b[0]), (a.to_dense(), b), (a, b.to_sparse()))]
    refused += [str(caught(torch.hspmm, a, b[:2])), str(caught(torch.smm, b, b))]
    return [_parts(x) for x in found], refused, hasattr(torch.Tensor, "hspmm")


def test_gradients_of_products_that_stay_sparse(subject):
    torch = subject
    i = torch.sparse_coo_tensor([[0, 1, 1], [1, 0, 0]], [1.0, 2, 3], (2, 3)).requires_grad_()
    a = torch.sparse_coo_tensor([[1, 1, 0], [3, 1, 2]], [2.0, 5, 1], (2, 4)).requires_grad_()
    b, w = torch.arange(12.0).reshape(4, 3).requires_grad_(), torch.arange(6.0).reshape(2, 3)
    (torch.sspaddmm(i, a, b, beta=2, alpha=3).to_dense() * w).sum().backward()
    dense, right = a.detach().to_dense().requires_grad_(), b.detach().clone().requires_grad_()
    (3 * (dense @ right) * w).sum().backward()
    assert torch.equal(b.grad, right.grad) and torch.equal(a.grad.to_dense(), dense.grad * (dense != 0)) and i.grad.to_dense().tolist() == [[0, 2, 0], [6, 0, 0]]
