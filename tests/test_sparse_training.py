"""Programs with sparse tensors: sparse gradients of embeddings, their optimizers, graph networks, files."""
import functools
import io

import pytest
from same import caught, same
from test_sparse import _parts

import torchlike


def _start(torch):
    return torch.arange(12.0).reshape(6, 2) / 7


@same
def test_embedding_gradient(torch):
    w = _start(torch).requires_grad_()
    index = torch.tensor([[1, 4], [1, 0]])
    out = torch.nn.functional.embedding(index, w, sparse=True)
    (out * torch.arange(8.0).reshape(2, 2, 2)).sum().backward()
    first = _parts(w.grad), repr(w.grad)
    torch.nn.functional.embedding(index[0], w, sparse=True).sum().backward()
    both = w.grad.to_dense()
    torch.nn.functional.embedding(index[0], w).sum().backward()
    return first, both, w.grad.to_dense(), str(w.grad.layout)


@same
def test_embedding_padding_and_options(torch):
    w = _start(torch).requires_grad_()
    out = torch.nn.functional.embedding(torch.tensor([1, 3, 1, 0]), w, padding_idx=3, sparse=True)
    out.pow(2).sum().backward()
    emb = torch.nn.Embedding(5, 3, sparse=True, padding_idx=1)
    emb(torch.tensor([1, 2])).sum().backward()
    seen = _parts(w.grad), _parts(emb.weight.grad), emb.weight.grad.is_sparse
    emb.zero_grad()
    with torch.no_grad():
        quiet = emb(torch.tensor([2])).requires_grad
    bad = torch.nn.functional.embedding(torch.tensor([1]), w, scale_grad_by_freq=True, sparse=True) if False else None
    return seen, emb.weight.grad, quiet, bad


@same
def test_embedding_bag(torch):
    found = []
    for mode in ("sum", "mean"):
        w = _start(torch).requires_grad_()
        out = torch.nn.functional.embedding_bag(torch.tensor([1, 2, 4, 1]), w, torch.tensor([0, 3]), mode=mode, sparse=True)
        (out * torch.arange(4.0).reshape(2, 2)).sum().backward()
        found += [out.detach(), w.grad.to_dense(), w.grad.is_sparse]
    return found


@same
def test_gradients_from_several_uses(torch):
    """A table used sparsely twice, and once as a matrix."""
    w = _start(torch).requires_grad_()
    a = torch.nn.functional.embedding(torch.tensor([1, 2]), w, sparse=True)
    b = torch.nn.functional.embedding(torch.tensor([2, 5]), w, sparse=True)
    (a * b).sum().backward(retain_graph=True)
    first = w.grad.to_dense()
    ((a * b).sum() + (w * w).sum()).backward()
    (g,) = torch.autograd.grad(torch.nn.functional.embedding(torch.tensor([3]), w, sparse=True).sum(), w)
    return first, w.grad.to_dense(), _parts(g)


_OPTIONS = [("SGD", {}), ("SGD", {"momentum": 0.9}), ("SGD", {"maximize": True}), ("SGD", {"momentum": 0.9, "nesterov": True}), ("SGD", {"weight_decay": 0.1}),
            ("Adagrad", {}), ("Adagrad", {"maximize": True, "lr_decay": 0.1}), ("Adagrad", {"weight_decay": 0.1}), ("SparseAdam", {}),
            ("SparseAdam", {"maximize": True, "betas": (0.8, 0.99), "eps": 1e-6}), ("Adam", {}), ("AdamW", {}), ("RMSprop", {}), ("Adadelta", {}), ("NAdam", {})]


@pytest.mark.parametrize(("name", "options"), _OPTIONS)
def test_optimizers(name, options, oracle, subject):
    @same
    def run(torch):
        w, other = _start(torch).requires_grad_(), torch.ones(2, requires_grad=True)
        groups = [w] if name == "SparseAdam" else [w, other]
        optimizer = getattr(torch.optim, name)(groups, lr=0.1, **options)
        losses = []

        def step(index):
            optimizer.zero_grad()
            loss = ((torch.nn.functional.embedding(torch.tensor(index), w, sparse=True) * other - 1) ** 2).sum()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        failed = caught(step, [1, 3, 1])
        if isinstance(failed, str):
            return failed
        for index in ([1, 3, 1], [0, 5, 5], [2, 2, 2], [1, 3, 0], [4, 3, 1], [1, 1, 1, 1]):
            step(index)
        state = optimizer.state_dict()["state"][0] if optimizer.state_dict()["state"] else {}
        return losses, w.detach(), other.detach(), {k: v.to_dense() if hasattr(v, "to_dense") else v for k, v in state.items() if v is not None}
    run(oracle, subject)


@same
def test_sparse_adam_refuses(torch):
    w = torch.ones(2, requires_grad=True)
    w.sum().backward()
    make = torch.optim.SparseAdam
    return (caught(make([w]).step), caught(make, [w], lr=-1), caught(make, [torch.ones(2, 2).to_sparse().requires_grad_()]), caught(make, [w], betas=(2, 0.1)),
            repr(make([w])))


@same
def test_word2vec(torch):
    """Skip-gram with negative samples, as many programs have it."""
    torch.manual_seed(0)
    u, v = torch.nn.Embedding(20, 8, sparse=True), torch.nn.Embedding(20, 8, sparse=True)
    optimizer = torch.optim.SparseAdam([*u.parameters(), *v.parameters()], lr=0.05)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)
    losses = []
    for step in range(8):
        centre = torch.arange(6) * (step + 1) % 20
        context, negative = (centre + 1) % 20, (centre.unsqueeze(1) + torch.arange(2, 5)) % 20
        score = torch.nn.functional.logsigmoid((u(centre) * v(context)).sum(1).clamp(-10, 10))
        against = torch.nn.functional.logsigmoid(-torch.bmm(v(negative), u(centre).unsqueeze(2)).squeeze(2)).sum(1)
        loss = -(score + against).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses, u.weight.detach(), v.weight.detach()


@same(tol=10)
def test_graph_network(torch):
    """pygcn's layers: torch.sparse.FloatTensor, torch.spmm."""
    torch.manual_seed(1)

    class Convolution(torch.nn.Module):
        def __init__(self, n_in, n_out):
            super().__init__()
            self.weight = torch.nn.parameter.Parameter(torch.FloatTensor(n_in, n_out))
            self.bias = torch.nn.parameter.Parameter(torch.FloatTensor(n_out))
            self.weight.data.uniform_(-0.5, 0.5)
            self.bias.data.uniform_(-0.5, 0.5)

        def forward(self, x, adj):
            return torch.spmm(adj, torch.mm(x, self.weight)) + self.bias
    i = torch.randint(0, 12, (2, 40))
    adj = torch.sparse.FloatTensor(i, torch.rand(40), torch.Size([12, 12]))
    x, y = torch.rand(12, 5), torch.arange(12) % 3
    one, two = Convolution(5, 8), Convolution(8, 3)
    optimizer = torch.optim.Adam([*one.parameters(), *two.parameters()], lr=0.05)
    losses = []
    for _ in range(12):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(two(torch.relu(one(x, adj)), adj), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, one.weight.detach()


def test_files_both_ways(oracle, subject):
    def things(torch):
        s = torch.sparse_coo_tensor([[0, 1, 1], [2, 0, 0]], [1.0, 2.0, 3.0], (2, 3))
        return {"s": s, "c": s.coalesce(), "r": s.to_sparse_csr(), "k": s.to_sparse_csc().double(), "p": torch.nn.Parameter(s), "h": torch.eye(3).to_sparse(1)}
    for source, target in ((oracle, subject), (subject, oracle), (subject, subject)):
        for weights_only in (True, False):
            file = io.BytesIO()
            source.save(things(source), file)
            file.seek(0)
            made = target.load(file, weights_only=weights_only)
            for name, want in things(target).items():
                assert repr(made[name]) == repr(want), (source, target, name)


def test_file_with_indices_outside(oracle, subject):
    file = io.BytesIO()
    oracle.save(oracle.sparse_coo_tensor([[0], [7]], [1.0], (2, 3)), file)
    file.seek(0)
    with pytest.raises(RuntimeError, match="found index 7"):
        subject.load(file)


@same
def test_compiled(torch):
    """torch.compile of a step with sparse operands: the same numbers as without."""
    s = torch.eye(3).to_sparse()
    w = torch.ones(3, 2, requires_grad=True)

    def step(x):
        return (torch.sparse.mm(s, x) * 2).sum()
    compiled = torch.compile(step, backend="eager")
    found = []
    for k in range(4):
        w.grad = None
        if k == 3:
            s = s * 4
        loss = compiled(w)
        loss.backward()
        found.append((loss.item(), w.grad.clone()))
    dense = torch.compile(lambda x: (x * 2).sum(), backend="eager")
    return found, [dense(w * k).item() for k in range(4)]


@same
def test_compiled_step(torch):
    """A whole training step with a sparse gradient."""
    w = _start(torch).requires_grad_()
    optimizer = torch.optim.SparseAdam([w], lr=0.1)

    def step(index):
        optimizer.zero_grad()
        loss = (torch.nn.functional.embedding(index, w, sparse=True) ** 2).sum()
        loss.backward()
        optimizer.step()
        return loss
    compiled = torch.compile(step, backend="eager")
    return [compiled(torch.tensor([k % 5, 1])).item() for k in range(6)], w.detach()


@same
def test_clipping_and_zeroing(torch):
    w = _start(torch).requires_grad_()
    torch.nn.functional.embedding(torch.tensor([1, 2]), w, sparse=True).sum().backward()
    optimizer = torch.optim.SGD([w], lr=0.1)
    optimizer.zero_grad(set_to_none=False)
    zero = w.grad.to_dense()
    w.grad = None
    w.grad = torch.sparse_coo_tensor([[1]], torch.ones(1, 2), (6, 2))
    optimizer.step()
    return zero, w.detach(), caught(setattr, w, "grad", torch.sparse_coo_tensor([[1]], torch.ones(1, 2), (5, 2)))


@same
def test_gradient_through_a_scaled_table(torch):
    w = _start(torch).requires_grad_()
    torch.nn.functional.embedding(torch.tensor([1, 4, 1]), w * 2, sparse=True).pow(2).sum().backward()
    return w.grad.to_dense()


@same(tol=10)
def test_normalised_graph(torch):
    """Degrees, self loops, D^-1/2 A D^-1/2, edge dropout as in LightGCN, attention over edges."""
    torch.manual_seed(3)
    edges = torch.randint(0, 8, (2, 20))
    adj = torch.sparse_coo_tensor(edges, torch.ones(20), (8, 8)).coalesce() + torch.eye(8).to_sparse()
    degree = torch.sparse.sum(adj, dim=1).to_dense()
    scale = torch.diag(degree.pow(-0.5)).to_sparse()
    normal = torch.sparse.mm(torch.sparse.mm(scale, adj), scale).coalesce()
    row, col = normal.indices()
    kept = (torch.rand(normal.values().shape[0]) + 0.7).int().bool()
    dropped = torch.sparse.FloatTensor(normal.indices().t()[kept].t(), normal.values()[kept] / 0.7, normal.size())
    emb = torch.nn.Embedding(8, 4)
    layers = [emb.weight]
    for _ in range(2):
        layers.append(torch.sparse.mm(dropped, layers[-1]))
    out = torch.stack(layers, 1).mean(1)
    score = torch.sparse_coo_tensor(torch.stack([row, col]), (out[row] * out[col]).sum(1), (8, 8))
    attended = torch.sparse.mm(torch.sparse.softmax(score, 1), out)
    attended.pow(2).sum().backward()
    half = adj.to_sparse_csr()
    return _parts(normal), row, attended.detach(), emb.weight.grad, _parts(half), half @ out.detach(), (adj.t() + adj).coalesce().values()


@same
def test_from_scipy(torch):
    import scipy.sparse
    m = scipy.sparse.random(5, 6, 0.4, format="csr", random_state=0, dtype="float32")
    made = torch.sparse_csr_tensor(m.indptr, m.indices, m.data, m.shape)
    shared = torch.sparse_csr_tensor(torch.from_numpy(m.indptr), torch.from_numpy(m.indices), torch.from_numpy(m.data), size=m.shape)
    c = m.tocoo()
    coo = torch.sparse_coo_tensor(torch.stack([torch.from_numpy(c.row), torch.from_numpy(c.col)]), c.data, c.shape)
    return _parts(made), _parts(shared), _parts(coo), made @ torch.ones(6, 2), shared @ torch.ones(6), shared.to_dense(), _parts(coo.to_sparse_csr())


@same
def test_clip_and_look(torch):
    w = _start(torch).requires_grad_()
    torch.nn.functional.embedding(torch.tensor([1, 4, 1]), w, sparse=True).pow(2).sum().backward()
    norms = caught(torch.nn.utils.clip_grad_norm_, [w], 1.0), caught(torch.nn.utils.clip_grad_value_, [w], 0.1)
    seen = []
    v = _start(torch).requires_grad_()
    v.register_hook(lambda g: seen.append(g.is_sparse))
    torch.nn.functional.embedding(torch.tensor([2]), v, sparse=True).sum().backward()
    v.grad *= 3
    return norms, w.grad.to_dense(), seen, v.grad.to_dense(), v.grad.data.coalesce().indices()


def test_compile_with_a_sparse_argument_stays_eager():
    eye, x = torchlike.eye(3).to_sparse(), torchlike.randn(3, 2)
    product = torchlike.compile(lambda s, x: s @ x)
    for _ in range(4):
        assert torchlike.equal(product(eye, x), x)
    with pytest.raises(RuntimeError, match="a sparse tensor"):
        torchlike.compile(lambda s, x: s @ x, fullgraph=True)(eye, x)


@same
def test_hooks_of_sparse_tensors(torch):
    """On a leaf and on a result: they are handed sparse gradients, and may hand back others, whole ones too."""
    found = []
    for layout in ("sparse_coo", "sparse_csr"):
        x = (torch.eye(3) * 2).to_sparse(layout=getattr(torch, layout)).requires_grad_()
        seen = []
        handle = x.register_hook(lambda g, seen=seen: seen.append((str(g.layout), g.to_dense())))
        y = x * 2
        y.register_hook(lambda g: g * 3)
        y.to_dense().sum().backward()
        found += [seen, x.grad.to_dense()]
        handle.remove()
        x.grad = None
        (x * 2).to_dense().sum().backward()
        found += [len(seen), x.grad.to_dense()]
    x = (torch.eye(3) * 2).to_sparse().requires_grad_()
    y = x.coalesce() * 2
    y.retain_grad()
    x.register_post_accumulate_grad_hook(lambda t: found.append((t is x, t.grad.to_dense())))
    y.to_dense().sum().backward()
    return found, y.grad.to_dense(), y.retains_grad


def test_what_a_hook_of_a_sparse_tensor_hands_back(subject):
    """Of another pattern: what counts are the elements that the tensor specifies."""
    for other in (lambda g: g.to_dense().to_sparse(1) * 3, lambda g: g.to_dense() * 3, lambda g: g.to_dense().to_sparse_csr() * 3):
        x = subject.eye(2).to_sparse().requires_grad_()
        y = x * 2
        y.register_hook(other)
        y.to_dense().sum().backward()
        assert x.grad.to_dense().tolist() == [[6.0, 0.0], [0.0, 6.0]]


@same
def test_gradients_of_entries_at_one_place(torch):
    """A place has one gradient, however many entries add up there."""
    found = []
    weights = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    for f in (lambda x: (x * 2).to_dense(), lambda x: x.coalesce().to_dense() ** 2, lambda x: torch.sparse.mm(x, weights), lambda x: x.t().to_dense()):
        x = torch.sparse_coo_tensor([[0, 0, 1], [1, 1, 0]], [1.0, 2.0, 3.0], (3, 2)).requires_grad_()
        f(x).sum().backward()
        found.append(x.grad.to_dense())
        f(x).sum().backward()
        found.append(x.grad.to_dense())
        x.grad = x.grad * 2
        f(x).sum().backward()
        found += [x.grad.to_dense(), torch.autograd.grad(f(x).sum(), x)[0].to_dense()]
    return found


@same
def test_writes_into_the_gradient_of_a_sparse_leaf(torch):
    """One that nobody called coalesced, whose places differ."""
    x = torch.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [16.0, 32.0, 64.0], (2, 3))
    x.grad = x.clone()
    x.grad._values().mul_(0.25)
    first = x.grad.to_dense()
    y = x.clone().requires_grad_()
    (y * 2).to_dense().sum().backward()
    y.grad.mul_(3)
    second = y.grad.to_dense()
    y.grad.zero_()
    (y * 2).to_dense().sum().backward()
    scaler, p = torch.amp.GradScaler("cpu", init_scale=4.0), x.clone()
    p.grad = x.clone()
    scaler.scale(torch.ones(()))
    scaler.unscale_(torch.optim.SGD([p], lr=1.0))
    return first, second, y.grad.to_dense(), p.grad.to_dense()


@same
def test_backward_of_sparse_results(torch):
    whole = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    found = []
    for layout in ("sparse_coo", "sparse_csr"):
        to = {"layout": getattr(torch, layout)}
        x = whole.to_sparse(**to).requires_grad_()
        y = x * 2
        y.backward(whole.to_sparse(**to))
        found += [x.grad.to_dense(), torch.autograd.grad(x * 3, x, torch.ones(2, 2).to_sparse(**to))[0].to_dense()]
        found += [caught(x.clone().backward), caught(functools.partial(x.clone().backward, torch.ones(2).to_sparse())), caught(whole.to_sparse(**to).backward)]
    s = torch.ones(2, 2, requires_grad=True)
    s.to_sparse().backward(whole.to_sparse())
    one = torch.ones(1, 1).to_sparse().requires_grad_()
    seen = []
    y = one * 3
    z = one * 2
    z.register_hook(lambda g: seen.append(g is None))
    y.backward(torch.ones(1, 1).to_sparse())
    return found, s.grad, one.grad.to_dense()


def test_gradients_of_sparse_results_count_where_they_have_elements(subject):
    x = subject.tensor([[1.0, 0.0], [2.0, 3.0]]).to_sparse().requires_grad_()
    for g in (subject.ones(2, 2).to_sparse(), subject.ones(2, 2), subject.ones(2, 2).to_sparse_csr()):
        x.grad = None
        (x * 2).backward(g)
        assert x.grad.to_dense().tolist() == [[2.0, 0.0], [2.0, 2.0]]


@same
def test_no_sparse_dimensions(torch):
    """All entries lie at one place."""
    found = []
    for shape in ((1, 2), (1, 0, 2)):
        values = torch.ones(5, *shape).requires_grad_()
        x, other = torch.sparse_coo_tensor(torch.zeros(0, 5), values, shape), torch.sparse_coo_tensor(torch.zeros(0, 3), torch.ones(3, *shape), shape)
        y = (x + other).coalesce()
        torch.sparse_coo_tensor(y.indices(), y.values().tanh(), y.size()).to_dense().sum().backward()
        found += [y.to_dense(), values.grad, (x - other).to_dense(), (x.coalesce() + other.coalesce()).to_dense(), (x * other).to_dense()]
    return found
