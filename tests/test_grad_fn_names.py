"""What a printed result says of its graph: the names of torch's nodes, for calls whose results scripts print."""
import pytest

CALLS = """torch.vdot(v, v); a + b; a + 1; a - b; 1 - a; a - 1; a * 2; a / 2; a ** 2; -a; a @ w; c @ w; v @ v; a.t(); a.sum(); a.sum(0); a.sum((0, 1)); a.mean(); a.mean(0)
a.mean((0, 1)); a.prod(); a.prod(0)
a.std(); a.std(0); a.var(0); a.max(); a.max(0)[0]; a.amax(0); a.median(); a.norm(); a.logsumexp(0); a.cumsum(0); a.exp(); a.log(); a.log1p(); a.expm1(); a.sqrt()
a.rsqrt(); a.tanh(); a.sigmoid()
a.relu(); F.gelu(a); F.silu(a); F.elu(a); F.leaky_relu(a); F.softplus(a); a.abs(); a.clamp(0, 1); a.view(-1); a.reshape(4, 3); a.flatten(); a.transpose(0, 1)
a.unsqueeze(0); a[None].squeeze()
a[None].squeeze(0); a[None].squeeze((0,)); a.expand(2, 3, 4); a.repeat(2, 1); torch.cat([a, b]); a.split(2)[0]; a[0]; a[0, 1]; a[:, 1]; a[1:]; a[i]
a.gather(1, i[:, None]); torch.where(a > 0, a, b)
a.tril(); a.sort()[0]; a.topk(2)[0]; a.softmax(1); a.log_softmax(1); F.layer_norm(a, (4,)); F.linear(a, w.t()); F.linear(a, w.t(), torch.rand(5))
F.linear(c, w.t()); F.linear(c, w.t(), torch.rand(5))
F.dropout(a, 0.5); F.embedding(i, a); F.mse_loss(a, b); F.l1_loss(a, b); F.smooth_l1_loss(a, b); F.cross_entropy(a, torch.tensor([0, 1, 2]))
F.binary_cross_entropy_with_logits(a, b)
F.cosine_similarity(a, b); a.to(torch.float64); a.clone(); a.lerp(b, 0.5); torch.bmm(c, c.mT); torch.outer(v, v); torch.linalg.inv(a[:, :3] + torch.eye(3))
a.index_select(0, i); a.take(i); a.masked_select(a > 0.5); a.index_add(0, i, b); a.index_copy(0, i, b); a.index_fill(0, i, 0.0); a.index_fill(0, i, v[0])
a.index_reduce(0, i, b, "amax"); a.put(i, v[:3]); a.masked_fill(a > 0.5, 0); a.masked_fill(a > 0.5, v[0]); torch.diag_embed(v); a.roll(1); a.roll(1, 0); a.rot90(); a.rot90(2)
torch.stack([a, b]); torch.block_diag(a, b); torch.addmm(w[:3, :3], a, b.t()); torch.baddbmm(c @ c.mT, c, c.mT); torch.addmv(a[:, 0], a, v); torch.addbmm(w[:3, :3], c, c.mT)
a.split([1, 2])[1]; a.dist(b); a.renorm(2, 0, 1.0); w.trace(); 2 ** a; torch.var_mean(a)[0]; torch.var_mean(a, 0)[1]; torch.std_mean(a)[0]; a.aminmax()[0]; a.aminmax(dim=0).max
F.pairwise_distance(a, b); torch.cdist(a, b); torch.cdist(a, b, 1.0); F.pdist(a); F.pixel_shuffle(a.reshape(12, 1, 1)[None, :4], 2); F.pixel_unshuffle(c[:, None, :2], 2)
F.affine_grid(c[:, :2, :3], (2, 1, 2, 2)); F.multi_margin_loss(a, i); F.multilabel_margin_loss(a, i[:, None].expand(3, 4)); F.embedding_bag(i, a, i[:1]); a.deg2rad(); a.rad2deg()
torch.special.xlog1py(a, b); F.conv1d(c, torch.rand(2, 3, 2), torch.rand(2)); F.conv1d(c, torch.rand(2, 3, 2)); F.conv2d(c[None], torch.rand(3, 2, 2, 2), torch.rand(3))
F.conv_transpose2d(c[None], torch.rand(2, 3, 2, 2), torch.rand(3)); F.avg_pool1d(c, 2)
F.avg_pool2d(c[None], 2); F.avg_pool3d(c[None, None], 2); F.max_pool1d(c, 2); F.max_pool2d(c[None], 2)
F.max_pool3d(c[None, None], 2); F.adaptive_avg_pool1d(c, 2); F.adaptive_avg_pool2d(c[None], (3, 2)); F.adaptive_avg_pool2d(c[None], 1); F.adaptive_max_pool1d(c, 2)
F.adaptive_max_pool2d(c[None], 2); F.avg_pool2d(c[None], 2, padding=1, count_include_pad=False)
F.cross_entropy(a, i, label_smoothing=0.1); F.cross_entropy(a, b.detach()); F.cross_entropy(a, i, reduction="none"); F.cross_entropy(c[None], i[None, :, None].expand(1, 3, 4) % 2)
F.cross_entropy(c, i[None, :].expand(2, 3)[:, [0, 1, 2, 0]]); F.cross_entropy(c, i[None, :].expand(2, 3)[:, [0, 1, 2, 0]], reduction="none")
F.nll_loss(a, i); F.cross_entropy(a[0], i[0])
a.scatter_add(0, i[None], b); a.select_scatter(v, 0, 1); a.slice_scatter(b[:2], 0, 0, 2); a.diagonal_scatter(v[:3])
a.clone().add_(1); a.clone().mul_(b); c @ c.mT; c[None] @ c.mT; b[0] @ c.mT; a[0] @ w; a @ c.mT; c @ a[0]
F.rms_norm(a, (4,)); F.rms_norm(a, (4,), v); F.rms_norm(a.half(), (4,))
torch.einsum("ij,kj->ik", a, b); torch.einsum("ij,jk", a, w); torch.einsum("bi,bj->bij", a, b); torch.einsum("ij->ji", a); torch.einsum("ij->", a); torch.einsum("ii->i", a[:, :3])
torch.einsum("ij,ij->", a, b); torch.einsum("ij,ij->ij", a, b); torch.einsum("ij,jk,k->i", a, w, w[0]); torch.einsum("ij,k->ik", a, v); torch.einsum("...ij,...jk->...ik", c, w)
torch.einsum("ij,jk,l->il", a, w, v); torch.einsum("ij,jk,kl->ijl", a, w, w.mT); torch.einsum("ij,j->ij", a, v); torch.einsum("ij,j->i", a[:, :1], v[:1])
a.quantile(0.5); a.quantile(torch.tensor([0.2, 0.3]), 1, True); a.nanquantile(0.5, 0)
torch.trapezoid(a); torch.trapezoid(a, dx=2.0); torch.trapezoid(a, b); torch.linalg.cond(a[:, :3]); torch.linalg.cond(a[:, :3], -2); F.bilinear(a, b, a.expand(2, 3, 4).mT @ a)
torch.complex(a, b).real; torch.complex(a, b).conj().imag; torch.combinations(v); nn.utils.rnn.pad_sequence([a, a[:2]]); nn.utils.rnn.pad_sequence([a, a[:2]], True)
F.scaled_dot_product_attention(a, a, a); F.scaled_dot_product_attention(c, c, c); F.scaled_dot_product_attention(c[None], c[None], c[None]); a // 2; torch.zeros(3, 4).copy_(a)
F.scaled_dot_product_attention(c[None], c[None], c[None], dropout_p=0.1); F.scaled_dot_product_attention(c[None], c[None], c[None], torch.rand(3, 3))"""


@pytest.mark.parametrize("call", [c.strip() for c in CALLS.replace("\n", ";").split(";")])
def test_names(subject, oracle, call):
    found = []
    for torch in (subject, oracle):
        torch.manual_seed(0)
        names = {n: torch.rand(*shape).requires_grad_() for n, shape in {"a": (3, 4), "b": (3, 4), "c": (2, 3, 4), "v": (4,), "w": (4, 5)}.items()}
        node = eval(call, {"torch": torch, "nn": torch.nn, "F": torch.nn.functional, "i": torch.tensor([0, 2, 1]), **names}).grad_fn
        found.append((type(node).__name__, node.name()))
    assert found[0] == found[1]


GRAPHS = """a + 1; 1 - a; a * 2; a / 2; 2 ** a; a ** 2; F.elu(a); F.softplus(a); a.clamp(0, 1); a[i]; a.gather(1, i[:, None]); torch.where(a > 0, a, b); F.dropout(a, 0.5)
F.embedding(i, a); F.smooth_l1_loss(a, b); F.binary_cross_entropy_with_logits(a, b); a.lerp(b, 0.5); a.index_select(0, i); a.take(i); a.masked_select(a > 0.5)
a.index_add(0, i, b); a.index_copy(0, i, b); a.index_fill(0, i, 0.0); a.index_fill(0, i, v[0]); a.index_reduce(0, i, b, "amax"); a.put(i, v[:3])
a.masked_fill(a > 0.5, 0); a.masked_fill(a > 0.5, v[0]); torch.diag_embed(v); a.roll(1); a.rot90(); torch.stack([a, b]); torch.block_diag(a, b)
torch.addmm(v[:3], a, b.t()); torch.addmv(a[:, 0], a, v); torch.addbmm(v[:3], c, c.mT); torch.baddbmm(v[:3], c, c.mT); a.dist(b); a.renorm(2, 0, 1.0); w.trace()
F.pixel_shuffle(a.reshape(12, 1, 1)[None, :4], 2); F.multi_margin_loss(a, i); F.multilabel_margin_loss(a, i[:, None].expand(3, 4)); F.avg_pool2d(c[None], 2)
F.avg_pool3d(c[None, None], 2); F.adaptive_avg_pool2d(c[None], (3, 2)); F.adaptive_avg_pool2d(c[None], 1); F.adaptive_max_pool2d(c[None], 2); F.nll_loss(a, i)
F.conv1d(c, c, v[:2]); F.conv1d(c, c); F.conv2d(c[None], c[None], v[:1]); F.conv_transpose2d(c[None], c[:, None], v[:1]); F.conv_transpose1d(c, c.transpose(0, 1))
F.layer_norm(a, (4,), v, v); F.layer_norm(a, (4,)); F.batch_norm(a, None, None, v, v, True); F.batch_norm(a, None, None, training=True)"""


@pytest.mark.parametrize("call", [c.strip() for c in GRAPHS.replace("\n", ";").split(";")])
def test_graphs(subject, oracle, call):
    """Node by node, as programs see it that walk through a graph."""
    def told(node):
        return node and [node.name(), *(told(before) for before, _ in node.next_functions)]
    found = []
    for torch in (subject, oracle):
        torch.manual_seed(0)
        names = {n: torch.rand(*shape).requires_grad_() for n, shape in {"a": (3, 4), "b": (3, 4), "c": (2, 3, 4), "v": (4,), "w": (4, 5)}.items()}
        found.append(told(eval(call, {"torch": torch, "F": torch.nn.functional, "i": torch.tensor([0, 2, 1]), **names}).grad_fn))
    assert found[0] == found[1]


WRITES = """t.fill_(2.0); t.fill_(2); t.fill_(v[0]); t.zero_(); t[:] = 2.0; t[...] = torch.tensor(2.0); t[:] = v[0]; t[:, :] = 3; t[0:9] = 1.0; t[()] = 1.0; t[1] = 2.0
t[:] = v; t[None] = 1.0; t.copy_(v); t.uniform_(); t.normal_(); t.exponential_(); t.bernoulli_(0.5); t.bernoulli_(p); t.random_(); t.random_(5); t.random_(2, 5)
t.log_normal_(); t.cauchy_(); t.geometric_(0.5); t = torch.fill(t, 2.0); t = torch.fill(t, v[0]); t[1:2] = v; e[1:2] = v; e[:] = v; e[:] = v[0]; t[1:2].zero_(); e[1].fill_(v[0])"""


@pytest.mark.parametrize("write", [c.strip() for c in WRITES.replace("\n", ";").split(";")])
def test_graphs_of_writes(subject, oracle, write):
    """What is written in place of a result, or of a tensor that was in no graph."""
    def told(node):
        return node and [type(node).__name__, *([n and n.name() for n, _ in node.next_functions] if type(node).__name__ not in ("CopySlices", "CopyBackwards") else ())]
    found = []
    for torch in (subject, oracle):
        torch.manual_seed(0)
        names = {"torch": torch, "t": torch.rand(3, 4).requires_grad_() * 1, "e": torch.empty(3, 4), "v": torch.rand(4).requires_grad_(), "p": torch.full((3, 4), 0.5)}
        exec(write, names)
        found.append((told(names["t"].grad_fn), told(names["e"].grad_fn)))
    assert found[0] == found[1]


def test_a_name_leaves_a_node_what_it_is(subject):
    from torchlike.utils._python_dispatch import TorchDispatchMode

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))
    a = subject.rand(2, 2, requires_grad=True)
    with Mode():
        joined, stacked = subject.cat([a, a]).grad_fn, subject.stack([a, a]).grad_fn
    assert type(stacked).__name__ == "StackBackward0"
    assert type(stacked).__bases__[0] is type(joined).__bases__[0]  # of the class whose backward modes see


SECOND = """a * b; a / b; a ** 2; a ** 3; 2 ** a; a ** b; 1 / a; -a; 1 - a; a @ w; c @ c.mT; a.mv(v); a.sum(); a.sum(0); a.mean(); a.mean(0); a.exp(); a.log(); a.log1p()
a.sqrt(); a.rsqrt(); a.sin(); a.cos(); a.tanh(); a.sigmoid(); a.relu(); a.abs(); a.square(); a.erf(); a.atan(); a.log2(); a.expm1(); a.norm(); a.std(); a.var(0)
a.prod(); a.logsumexp(0); a.cumsum(0); a.softmax(1); a.log_softmax(1); F.silu(a); F.gelu(a); F.softplus(a); F.elu(a); F.linear(a, w.t()); F.linear(a, w.t(), w[0])
F.linear(c, w.t()); F.mse_loss(a, b); F.cross_entropy(a, i); F.layer_norm(a, (4,)); F.embedding(i, a); F.dropout(a, 0.5); a.view(-1); a.t(); a.permute(1, 0)
a.transpose(0, 1); a[None]; a[0]; a[i]; a.tril(); a.flip(0); a.max(); a.max(0)[0]; a.min(); a.sort()[0]; torch.cat([a, b]); a.split(2)[0]; a.unbind()[0]
a.repeat(2, 1); a.gather(1, i[:, None]); a.clamp(0, 0.5); torch.where(a > 0.5, a, b); torch.maximum(a, b); F.pad(a, (1, 1))"""


@pytest.mark.parametrize("call", [c.strip() for c in SECOND.replace("\n", ";").split(";")])
def test_names_of_derivatives(subject, oracle, call):
    found = []
    for torch in (subject, oracle):
        torch.manual_seed(0)
        names = {n: torch.rand(*shape).requires_grad_() for n, shape in {"a": (3, 4), "b": (3, 4), "c": (2, 3, 4), "v": (4,), "w": (4, 5)}.items()}
        x = names["c" if call.startswith(("c @", "F.linear(c")) else "a"]
        y = eval(call, {"torch": torch, "F": torch.nn.functional, "i": torch.tensor([0, 2, 1]), **names})
        grad, = torch.autograd.grad((y * y).sum(), x, create_graph=True)
        found.append(type(grad.grad_fn).__name__)
    assert found[0] == found[1]


def test_classes_of_nodes_are_shown_without_a_module(subject, oracle):
    for torch in (subject, oracle):
        node = (torch.ones(2, requires_grad=True) * 2).sum().grad_fn
        leaf = node.next_functions[0][0].next_functions[0][0]
        assert (repr(type(node)), repr(type(leaf)), type(node).__module__) == ("<class 'SumBackward0'>", "<class 'AccumulateGrad'>", "builtins")
