"""Compressed matrices of blocks, and in batches, against real torch: making, converting, printing, arithmetic, products, gradients, files, errors."""
import copy
import io
import pickle

import pytest
from same import outcomes, same
from test_sparse import _parts

LAYOUTS = ("strided", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")
COMPRESSED = LAYOUTS[2:]


def _matrix(torch, batch=False, dense=False):
    x = torch.tensor([[1.0, 0, 0, 2, 0, 0], [0, 0, 0, 0, 0, 0], [0, 3, 0, 4, 0, 0], [5, 0, 0, 0, 0, 0]])
    x = torch.stack([x, x.flip(1)]) if batch else x
    return torch.stack([x, x * 2], -1) if dense else x


def _in(torch, layout, batch=False, dense=False, block=(2, 3)):
    """The matrix in a layout."""
    x = _matrix(torch, batch, dense)
    if layout == "strided":
        return x
    if layout == "sparse_coo":
        return x.to_sparse(x.dim() - dense)
    return x.to_sparse(layout=getattr(torch, layout), **({"dense_dim": 1} if dense else {}), **({"blocksize": block} if "bs" in layout else {}))


def _said(function, *args, **kwargs):
    """The parts of what it returns, or how it is refused, in words."""
    try:
        return _parts(function(*args, **kwargs))
    except Exception as refused:  # whichever it is
        return type(refused).__name__, str(refused)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_conversions(layout, oracle, subject):
    """Between all layouts, of one matrix and a batch, with and without dense dimensions; those that there are not are refused in torch's words."""
    @same
    def run(torch):
        found = {}
        for batch in (False, True):
            for dense in (False, True):
                t = _in(torch, layout, batch, dense)
                found[batch, dense, "strided"] = t.to_dense()
                for to in LAYOUTS[1:]:
                    options = {"blocksize": (2, 3)} if "bs" in to else {}
                    options |= {"dense_dim": 1} if dense and layout == "strided" else {}
                    found[batch, dense, to] = _said(t.to_sparse, layout=getattr(torch, to), **options)
                    if to != "sparse_coo":
                        found[batch, dense, to, "method"] = _said(getattr(t, f"to_{to}"), **options)
        return found
    run(oracle, subject)


@same
def test_conversions_refused(torch):
    """Sizes of blocks, dense dimensions and batches that do not fit."""
    x, found = _matrix(torch), []
    for t in (x, *(_in(torch, layout) for layout in LAYOUTS[1:])):
        for block in ((2, 2), (1, 6), (3, 3), (0, 2), (2,), (2, 3), 2, (-1, 2)):
            found += [_said(t.to_sparse_bsr, block), _said(t.to_sparse_bsc, block), _said(t.to_sparse, layout=torch.sparse_bsr, blocksize=block)]
        found += [_said(t.to_sparse, layout=getattr(torch, layout)) for layout in LAYOUTS]
        found += [_said(t.to_sparse, layout=getattr(torch, layout), blocksize=(1, 1)) for layout in LAYOUTS]
        found += [_said(t.to_sparse_csr, dense_dim=1), _said(t.to_sparse_bsr, (2, 3), dense_dim=1), _said(t.to_sparse_csc, dense_dim=-1)]
        found += [_said(t.to_sparse, sparse_dim) for sparse_dim in (1, 2, 3)] if t is not x else []
    b = torch.stack([x, x * 0])
    found += [_said(b.to_sparse_csr), _said(b.to_sparse_csc), _said(b.to_sparse_bsr, (2, 3)), _said(b[:0].to_sparse_csr), _said(b[:0].to_sparse_bsc, (2, 3))]
    return found, _said(x.to_sparse, dense_dim=1), _said(b[:, :0].to_sparse_csr), _said((x * 0).to_sparse_bsr, (2, 3)), _said(x[:0].to_sparse_bsc, (2, 3))


@same
def test_making(torch):
    v, w = torch.arange(12.0).reshape(2, 2, 3), torch.arange(60.0).reshape(2, 2, 3, 5)
    return outcomes({"torch": torch, "v": v, "w": w, "parts": _parts}, [f"parts({e})" for e in (
        "torch.sparse_bsr_tensor([0, 1, 2], [1, 0], v)", "torch.sparse_bsc_tensor([0, 1, 2], [1, 0], v)", "torch.sparse_bsr_tensor([0, 1, 2], [1, 0], w)",
        "torch.sparse_bsr_tensor(crow_indices=torch.tensor([0, 1, 2]).int(), col_indices=torch.tensor([1, 0]).int(), values=v, size=(4, 9), dtype=torch.float64)",
        "torch.sparse_bsc_tensor(ccol_indices=torch.tensor([0, 1, 2]), row_indices=torch.tensor([1, 0]), values=v, size=(4, 6), requires_grad=True)",
        "torch.sparse_compressed_tensor([0, 1, 2], [1, 0], v, (4, 6), layout=torch.sparse_bsr)", "torch.sparse_bsr_tensor([0, 1], [0], [[[1, 2], [3, 4]]])",
        "torch.sparse_compressed_tensor([0, 1, 2], [1, 0], v, layout=torch.sparse_bsc)", "torch.sparse_bsr_tensor([0, 1, 2], [1, 0], v[0])",
        "torch.sparse_csr_tensor([[0, 1, 2]] * 2, [[1, 0], [0, 1]], v[0, :, :2])", "torch.sparse_csc_tensor([[0, 1, 2]] * 2, [[1, 0], [0, 1]], v, (2, 2, 2, 3))",
        "torch.sparse_bsr_tensor([[0, 1, 2]] * 2, [[1, 0], [0, 1]], torch.stack([v, v]))", "torch.sparse_csr_tensor([0, 1], [0], [1.0], layout=torch.sparse_csc)",
        "torch.sparse_bsr_tensor([0, 1], [0], v[:1], layout=torch.sparse_bsr)", "torch.sparse_compressed_tensor([0, 1], [0], [1.0], layout=torch.sparse_coo)",
        "torch.zeros((2, 3, 4), layout=torch.sparse_csr)")])


@same
def test_what_is_checked(torch):
    """Every rule of batches and blocks, by `check_invariants=True`, by the functions that only check, and while checks are switched on."""
    ones = torch.ones
    rows, columns, r, c = [[0, 1, 3], [0, 2, 3]], [[1, 0, 1], [0, 1, 0]], [0, 1, 2], [1, 0]
    batches = [(rows, columns, s, size) for s in ((2, 3), (3, 3), (2, 2), (3,), (2, 3, 4)) for size in ((2, 2, 2), (2, 2), (3, 2, 2), (2, 3, 2), (2, 2, 3), (2, 2, 2, 4))]
    batches += [(a, b, (2, 3), (2, 2, 2)) for a, b in ((rows, columns[:1]), ([[0, 1, 3], [0, 2, 2]], columns), ([[0, 1, 3], [1, 2, 3]], columns), ([[rows[0]]], columns),
                                                       (rows, [[1, 0, 1], [0, 0, 0]]), (rows, [[1, 0, 1], [0, 2, 0]]), ([[0, 1, 3], [0, 3, 3]], columns))]
    blocks = [(r, c, s, size) for s in ((2, 2, 3), (2, 2), (3, 2, 3), (2, 2, 3, 5)) for size in ((4, 6), (4, 7), (5, 6), (6, 6), (4, 6, 5), (2, 4, 6))]
    blocks += [(a, b, (2, 2, 3), (4, 6)) for a, b in (([0, 2, 2], [1, 0]), ([0, 2, 2], [0, 1]), (r, [1, 2]), (r, [1, -1]), ([0, 1, 3], c), ([1, 1, 2], c))]
    some = torch.tensor([0, 7, 1, 7, 2, 7])
    blocks += [(some[::2], c, (2, 2, 3), (4, 6)), (r, some[:4:2].flip(0), (2, 2, 3), (4, 6)), (r, some[:3:2], (2, 2, 3), (4, 6)),
               (torch.tensor(r).short(), torch.tensor(c).short(), (2, 2, 3), (4, 6)), (torch.tensor(r).int(), torch.tensor(c), (2, 2, 3), (4, 6))]
    blocks += [([r, r], [[1, 0], [0, 1]], s, (2, 4, 6)) for s in ((2, 2, 2, 3), (3, 2, 2, 3))] + [([0], [], (0, 2, 3), (0, 6))]
    found = []
    for cases, layouts in ((batches, COMPRESSED[:2]), (blocks, COMPRESSED[2:])):
        for a, b, shape, size in cases:
            parts = *(x if isinstance(x, torch.Tensor) else torch.tensor(x, dtype=torch.int64) for x in (a, b)), ones(shape), size
            for name in layouts:
                found.append(_said(torch.sparse_compressed_tensor, *parts, layout=getattr(torch, name), check_invariants=True))
                found.append(_said(torch._validate_sparse_compressed_tensor_args, *parts, getattr(torch, name)))
                found.append(_said(getattr(torch, f"_validate_{name}_tensor_args"), *parts))
                with torch.sparse.check_sparse_tensor_invariants():
                    found.append(_said(getattr(torch, f"{name}_tensor"), *parts))
    return found


@same
def test_printing(torch):
    made = [_in(torch, layout, batch, dense) for layout in COMPRESSED for batch in (False, True) for dense in (False, True)]
    made += [made[8].clone().requires_grad_(), made[8].double(), made[8].clone().requires_grad_() * 2, torch.eye(60).to_sparse_bsr((3, 3)), torch.zeros_like(made[9])]
    return [repr(x) for x in made]


_FACTS = ("is_sparse", "is_sparse_csr", "layout", "_nnz()", "sparse_dim()", "dense_dim()", "shape", "dim()", "numel()", "is_leaf", "grad_fn", "crow_indices()", "col_indices()",
          "ccol_indices()", "row_indices()", "values()", "indices()", "is_coalesced()", "to_dense()", "item()", "numpy()", "is_same_size(m)", "stride()", "is_contiguous()",
          "detach()", "clone()", "double()", "int()", "bool()", "to(torch.float64)", "cpu() is m", "float() is m", "to_sparse()", "type()", "storage()", "zero_()", "sum()",
          "sum(dtype=torch.float64)", "select(0, 0)[0]", "requires_grad_().values()", "coalesce()", "reshape(4)", "expand(2, 4, 6)")


_UNARY = ("abs", "sqrt", "tan", "asinh", "atan", "tanh", "relu", "log1p", "expm1", "sgn", "sign", "floor", "ceil", "trunc", "round", "frac", "neg", "isnan",
          "isinf", "deg2rad", "erf", "signbit", "positive")


@pytest.mark.parametrize("layout", COMPRESSED)
@pytest.mark.parametrize("batch", [False, True])
def test_operations(layout, batch, oracle, subject):
    """What torch does with each layout; where it is refused, by the same class."""
    @same
    def run(torch):
        m, x = _in(torch, layout, batch, block=(2, 2)), _matrix(torch, batch)  # torch computes with square blocks only
        facts = [f for f in _FACTS if f != "select(0, 0)[0]" or batch and "cs" in layout]
        calls = [f"m.clone().{f}" for f in facts if " is m" not in f] + [f"m.{f}" for f in facts if " is m" in f]
        calls += ["m + m", "m.add(m, alpha=3)", "m * 2", "2 * m", "-m", "m - m", "m.clone().mul_(2)", "m.clone().copy_(m)", "m / 2", "torch.zeros_like(m)",
                  "torch.empty_like(m).shape", "x.sparse_mask(m)", "m.transpose(-2, -1)", "m.mT", "m.transpose(0, 0)", "m.transpose(0, -1)", "m.t()"]
        calls += [f"torch.{f}(m)" for f in _UNARY]
        calls += ["torch.sparse.sampled_addmm(m, x, x.mT @ x, beta=0.5)"] * (layout == "sparse_csr") + ["m.select(0, 1)", "m[1]", "m[-1]"] * batch
        return outcomes({"torch": torch, "m": m, "x": x, "parts": _parts}, [f"parts({call})" for call in calls])
    run(oracle, subject)


@same
def test_products(torch):
    m, n = (_in(torch, layout, block=(2, 2)) for layout in COMPRESSED[2:])
    scope = {"torch": torch, "m": m, "n": n, "b": _in(torch, "sparse_csr", True), "d": torch.arange(18.0).reshape(6, 3), "e": torch.arange(12.0).reshape(3, 4), "parts": _parts,
             "v": torch.arange(6.0), "w": torch.ones(4, 3)}
    return outcomes(scope, [f"parts({e})" for e in (
        "m @ d", "torch.mm(m, d)", "m.mm(d)", "torch.matmul(m, d)", "torch.sparse.mm(m, d)", "m @ v", "torch.mv(m, v)", "torch.addmv(torch.ones(4), m, v, beta=2, alpha=3)",
        "torch.addmm(w, m, d, beta=2, alpha=3)", "torch.nn.functional.linear(d.T, m)", "e @ n", "n @ d", "n @ v", "e @ m", "m @ m.t()", "m.t() @ e.T", "e @ m.t().t()",
        "m @ n.t()", "m @ torch.ones(5, 3)", "m @ d.double()", "b @ d", "b @ torch.ones(2, 6, 3)", "torch.sparse.mm(b, d)")])


@same
def test_parts_of_batches(torch):
    """Batch and dense dimensions are selected and exchanged; a matrix of a batch is not cut."""
    found = []
    for layout in COMPRESSED:
        x = torch.stack([_matrix(torch, True)] * 3)  # two batch dimensions
        t = x.to_sparse(layout=getattr(torch, layout), **({"blocksize": (2, 3)} if "bs" in layout else {}))
        h = _in(torch, layout, True, True)
        calls = ("t.transpose(0, 1)", "t.transpose(2, 3)", "t.transpose(1, 2)", "t.select(1, -1)", "t[2]", "t[2, 1]", "t.select(2, 0)", "t.select(0, 3)", "t.unbind()",
                 "h.select(-1, 1)", "h.select(0, 1)", "h[1].select(2, 0)")
        found += [_said(eval, call, {"t": t, "h": h}) for call in calls]
    return found


def _gradient(torch, layout, f, batch):
    x = _matrix(torch, batch)
    x = torch.cat([x, x * 0], -2).requires_grad_()
    made = f(x.to_sparse(layout=getattr(torch, layout), **({"blocksize": (2, 3)} if "bs" in layout else {})))
    (made * torch.arange(1.0, made.numel() + 1).reshape(made.shape)).sum().backward()
    return x.grad.to_dense()


@pytest.mark.parametrize("layout", COMPRESSED)
def test_gradients_of_what_was_dense(layout, oracle, subject):
    """They reach all elements of the blocks that there are."""
    @same
    def run(torch):
        found = []
        for f in (lambda t: t.to_dense(), lambda t: (t * 2).to_dense(), lambda t: t.transpose(-2, -1).to_dense(), lambda t: (t + t).to_dense()):
            found.append(_gradient(torch, layout, f, False))
        return found
    run(oracle, subject)


@pytest.mark.parametrize("layout", COMPRESSED)
def test_gradients_of_batches(layout, subject):
    """torch has none: a dense tensor's gradient is there where its elements, or their blocks, have entries."""
    torch = subject
    x = _matrix(torch, True)
    x = torch.cat([x, x * 0], -2)
    there = torch.ones_like(x.to_sparse(layout=getattr(torch, layout), **({"blocksize": (2, 3)} if "bs" in layout else {}))).to_dense()
    weights = torch.arange(1.0, x.numel() + 1)
    assert there.sum() > 0
    assert torch.equal(_gradient(torch, layout, lambda t: (t + t).to_dense(), True), weights.reshape(x.shape) * there * 2)
    flipped = weights.reshape(x.mT.shape).mT
    assert torch.equal(_gradient(torch, layout, lambda t: t.mT.to_dense(), True), flipped * there)
    assert torch.equal(_gradient(torch, layout, lambda t: t[1].to_dense(), True), torch.stack([there[0] * 0, weights[:x[0].numel()].reshape(x[0].shape) * there[1]]))


def test_gradients_of_entries(subject):
    """torch has most of them only for rows of elements: the strided product is the specification."""
    torch = subject
    d = torch.arange(12.0).reshape(6, 2)
    for f in (lambda t: t.to_dense(), lambda t: t @ d, lambda t: torch.sparse.mm(t, d), lambda t: t * 3, lambda t: t.sin(), lambda t: t.transpose(0, 1), lambda t: t.sum() ** 2):
        found = []
        for sparse in (True, False):
            v = torch.arange(1.0, 13.0).reshape(2, 2, 3).requires_grad_()
            zero = torch.zeros(2, 3)
            t = torch.sparse_bsr_tensor([0, 1, 2], [1, 0], v, (4, 6)) if sparse else torch.cat([torch.cat([zero, v[0]], 1), torch.cat([v[1], zero], 1)])
            made = f(t)
            made = made.to_dense()
            made.mul(torch.arange(1.0, made.numel() + 1).reshape(made.shape)).sum().backward()
            found.append((made.tolist(), v.grad))
        assert found[0][0] == found[1][0] and torch.allclose(found[0][1], found[1][1])
    leaf = _in(torch, "sparse_bsr").requires_grad_()
    (leaf @ d).sum().backward()
    assert leaf.grad.layout is torch.sparse_bsr and leaf.grad.shape == leaf.shape and leaf.grad.values().shape == leaf.values().shape


def test_files(oracle, subject):
    """Written by either, read by either."""
    for writer in (oracle, subject):
        file = io.BytesIO()
        writer.save([_in(writer, layout, batch, dense) for layout in COMPRESSED for batch in (False, True) for dense in (False, True)], file)
        for reader in (oracle, subject):
            file.seek(0)
            read = reader.load(file)
            assert [repr(x) for x in read] == [repr(_in(reader, layout, batch, dense)) for layout in COMPRESSED for batch in (False, True) for dense in (False, True)]


@same
def test_copies_and_modules(torch):
    """Buffers and their state; copies of several kinds."""
    m, b = _in(torch, "sparse_bsr"), _in(torch, "sparse_csc", True)
    net, other = torch.nn.Module(), torch.nn.Module()
    for module in (net, other):
        module.register_buffer("m", m.clone())
        module.register_buffer("b", b.clone())
    other.double()
    made = _parts(list(other.state_dict().values()))
    other.load_state_dict(net.state_dict())
    return made, _parts(list(other.state_dict().values())), _parts(pickle.loads(pickle.dumps(m))), _parts(pickle.loads(pickle.dumps(b)))


def test_deep_copies(subject):
    """torch has none of compressed tensors."""
    for layout in COMPRESSED:
        for batch in (False, True):
            m = _in(subject, layout, batch).requires_grad_()
            made = copy.deepcopy(m)
            assert repr(made) == repr(m) and made.values().data_ptr() != m.values().data_ptr()


@same
def test_comparison(torch):
    """assert_close compares the parts."""
    def said(a, b):
        try:
            torch.testing.assert_close(a, b)
        except AssertionError as e:
            return str(e)
        return "close"
    found = []
    for layout in COMPRESSED:
        m = _in(torch, layout)
        more = m.clone()
        more.values().add_(1)
        found += [said(m, m.clone()), said(m, more), said(m, _in(torch, "sparse_csr"))]
    return found


def test_blocks_that_do_not_meet(subject):
    """torch refuses such sums (by an error of MKL's), those with strided tensors, and blocks that are not square."""
    a = subject.eye(4).to_sparse_bsr((2, 2))
    b = subject.eye(4).flip(0).to_sparse_bsr((2, 2))
    wide = subject.ones(4, 6).to_sparse_bsr((2, 3))
    assert (wide + wide).to_dense().tolist() == (wide * 2).to_dense().tolist() and (wide @ subject.ones(6, 1)).tolist() == [[6.0]] * 4
    made = a + b
    assert made.layout is subject.sparse_bsr and made._nnz() == 4
    assert made.to_dense().tolist() == (subject.eye(4) + subject.eye(4).flip(0)).tolist()
    assert (a + subject.ones(4, 4)).tolist() == (subject.eye(4) + 1).tolist() == (subject.ones(4, 4) + a).tolist()
    a.add_(b)
    assert a.to_dense().tolist() == made.to_dense().tolist()
    with pytest.raises(RuntimeError, match="blocks of one size"):
        a + subject.eye(4).to_sparse_bsr((1, 2))


@same
def test_indices_of_32_bits_and_nothing(torch):
    """Conversions and sums keep the indices' dtype; a matrix without elements has no entries."""
    found = []
    for layout in COMPRESSED:
        m = _in(torch, layout, block=(2, 2))
        a, b = (m.ccol_indices(), m.row_indices()) if layout.endswith("c") else (m.crow_indices(), m.col_indices())
        m = torch.sparse_compressed_tensor(a.int(), b.int(), m.values(), m.shape, layout=m.layout)
        found += [_said(m.to_sparse, layout=getattr(torch, to), **({"blocksize": (2, 2)} if "bs" in to else {})) for to in LAYOUTS[1:]]
        found += [_said(lambda m=m: m + m), _said(lambda m=m: m * 2), _said(m.transpose, 0, 1)]
        block = {"blocksize": (1, 1)} if "bs" in layout else {}
        found += [_said(torch.zeros(shape).to_sparse, layout=m.layout, **block) for shape in ((0, 3), (3, 0), (2, 0, 3), (2, 3, 0))]
        found += [_said(torch.zeros(3, 2, 0).to_sparse, layout=m.layout, dense_dim=1, **block)]
    return found


@same
def test_copied_filled_and_like(torch):
    """What is copied has as many entries, blocks of the same size and the same layout; other entries are made at the same places."""
    found = []
    for layout in COMPRESSED:
        m = _in(torch, layout, block=(2, 2))
        other = (m * 2).abs()
        found += [_parts(m.clone().copy_(other)), _said(m.clone().copy_, _in(torch, "sparse_csr", True)), _said(m.clone().copy_, m.to_dense()),
                  _said(m.clone().copy_, torch.ones(4, 6).to_sparse(layout=m.layout, **({"blocksize": (2, 2)} if "bs" in layout else {})))]
        if "bs" in layout:
            found += [_said(torch.ones(4, 4).to_sparse(layout=m.layout, blocksize=(2, 4)).copy_, torch.ones(4, 4).to_sparse(layout=m.layout, blocksize=(4, 2)))]
        found += [_parts(x) for x in (torch.ones_like(m), torch.full_like(m, 3), torch.randn_like(m), torch.angle(-m), m.clone().fill_(2), m.clone().normal_())]
        found += [torch.empty_like(m).values().shape, torch.zeros_like(m).values().shape]
        found += [_said(torch.empty_like, m, layout=getattr(torch, to)) for to in COMPRESSED if to != layout]
        found += [_said(torch.zeros, size, layout=m.layout) for size in ((4,), (0,))] + [_said(torch.empty, (3,), layout=m.layout)]
    s = _in(torch, "sparse_coo")
    return found, [type(x).__name__ for x in (_said(torch.angle, s), _said(torch.ones_like, s), _said(s.fill_, 1))]


@same
def test_indices_are_checked_alone(torch):
    """The private function that torch's own tests ask."""
    cases = [(True, [0, 1, 2], [1, 0], 2, 2, 2), (False, [0, 1, 2], [1, 2], 2, 2, 2), (True, [0, 2, 2], [1, 0], 2, 2, 2), (True, [1, 1, 2], [1, 0], 2, 2, 2),
             (False, [0, 1, 3], [1, 0], 2, 2, 2), (True, [[0, 1, 2], [0, 0, 2]], [[1, 0], [0, 1]], 2, 2, 2), (True, [0, 3, 2], [1, 0], 2, 2, 2),
             (True, [0, 0, 0], [], 2, 2, 0), (False, [[0, 0, 0]], [[]], 2, 2, 0)]
    return [_said(torch._validate_compressed_sparse_indices, by_rows, torch.tensor(a), torch.tensor(b).long(), *sizes) for by_rows, a, b, *sizes in cases]


@same
def test_no_assignment(torch):
    """Elements of sparse tensors are not written by index."""
    def write(m):
        m[0, 0] = 1
    return [_said(write, _in(torch, layout)) for layout in LAYOUTS[1:]]
