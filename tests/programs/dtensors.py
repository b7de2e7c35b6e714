"""DTensors over the two processes that torchrun started; rank 0 prints. The same under torch and torchlike."""
import copy
import io

import torch
import torch.distributed as dist
import torch.nn.functional as F
from shown import show
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_module, distribute_tensor, full, ones, zeros
from torch.distributed.tensor.experimental import local_map, register_sharding

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
mesh = init_device_mesh("cpu", (world,))


def numbers(t):
    if isinstance(t, DTensor):
        t = t.full_tensor()
    return ["%.3f" % (round(x, 3) + 0.0) for x in t.detach().double().flatten().tolist()[:6]]


def attempt(label, function):
    try:
        found = function()
        show(label, found)
    except (RuntimeError, ValueError, TypeError, NotImplementedError, AssertionError, IndexError) as error:
        show(label, "ERROR", type(error).__name__)


g = torch.Generator().manual_seed(0)
whole = torch.randn(6, 4, generator=g)
rows, columns, copies = (distribute_tensor(whole, mesh, [p]) for p in (Shard(0), Shard(1), Replicate()))
for d in (rows, columns, copies):
    show(type(d).__name__, d.placements, d.shape, d.size(0), d.dim(), d.numel(), d.stride(), len(d), d.dtype, tuple(d.to_local().shape), d.device_mesh)
show(rows)
for d in (rows, columns, copies):
    for p in (Shard(0), Shard(1), Replicate()):
        moved = d.redistribute(placements=[p])
        show(moved.placements, tuple(moved.to_local().shape), numbers(moved))
uneven = distribute_tensor(torch.arange(5.0), mesh, [Shard(0)])
show(uneven.shape, uneven.to_local(), numbers(uneven), distribute_tensor(torch.arange(1.0), mesh, [Shard(0)]).to_local())
terms = DTensor.from_local(torch.full((4,), rank + 1.0), mesh, [Partial()])
show(terms.placements, numbers(terms), terms.redistribute(placements=[Shard(0)]).to_local(), numbers(terms + terms), (terms + terms).placements)
show(numbers(DTensor.from_local(torch.full((4,), rank + 1.0), mesh, [Partial("avg")])), numbers(DTensor.from_local(torch.full((4,), rank + 1.0), mesh, [Partial("max")])))
piece = DTensor.from_local(torch.full((2, 3), float(rank)), mesh, [Shard(0)])
show(piece.shape, numbers(piece), DTensor.from_local(torch.ones(3), mesh).placements)
show(DTensor.from_local(torch.ones(3 - rank), mesh, [Shard(0)], shape=(5,), stride=(1,)).shape)
show(zeros(4, 2, device_mesh=mesh, placements=[Shard(0)]).to_local(), ones(3, device_mesh=mesh).placements, full((4,), 2.5, device_mesh=mesh, placements=[Shard(0)]))

# operations: results, and where they lie
other = torch.randn(6, 4, generator=g)
w = torch.randn(4, 6, generator=g)
for x in (rows, columns, copies):
    for y in (Shard(0), Shard(1), Replicate()):
        o, v = distribute_tensor(other, mesh, [y]), distribute_tensor(w, mesh, [y])
        show(numbers(x + o), numbers(x @ v), numbers(torch.where(x > o, x, o)), numbers(torch.addmm(distribute_tensor(torch.ones(6), mesh), x, v)))
    for i, f in enumerate((lambda t: t * 2 + 1, torch.relu, lambda t: t.sum(), lambda t: t.sum(0), lambda t: t.mean(1), lambda t: t.mean(), lambda t: t.t(), lambda t: t.softmax(0),
              lambda t: t.softmax(1), lambda t: t.view(3, 8), lambda t: t.reshape(24), lambda t: t.view(6, 2, 2), lambda t: t.unsqueeze(0), lambda t: t[1:3],
              lambda t: t[:, 0], lambda t: t.max(), lambda t: t.max(1).values, lambda t: t.norm(), lambda t: t.amax(0), lambda t: t.argmax(1),
              lambda t: t.chunk(2, 1)[1], lambda t: torch.cat([t, t], 1), lambda t: torch.stack([t, t]), lambda t: t.to(torch.float64), lambda t: t.exp().log1p(),
              lambda t: t.transpose(0, 1).contiguous(), lambda t: t.expand(2, 6, 4), lambda t: t.cumsum(0), lambda t: t.tril(), lambda t: t.std(),
              lambda t: t.abs().pow(2).sqrt(), lambda t: torch.zeros_like(t), lambda t: t.sort(0).values, lambda t: t.flatten(), lambda t: F.gelu(t),
              lambda t: F.layer_norm(t, (4,)), lambda t: t.masked_fill(t > 0, 0.0), lambda t: -t / 3, lambda t: 1 - t, lambda t: t.squeeze(), lambda t: t.new_zeros(2, 2),
              lambda t: t.clamp(-1, 1), lambda t: torch.logsumexp(t, 1), lambda t: t.split([1, 3], 1)[1], lambda t: t.unbind(0)[2], lambda t: t.type(torch.float16))):
        attempt(i, lambda f=f, x=x: [(type(t).__name__, tuple(t.shape), t.dtype, numbers(t)) for t in [f(x)]])
for f in (lambda t: t * 2, torch.relu, lambda t: t.t(), lambda t: t.sum(0), lambda t: t.sum(1), lambda t: t.sum(), lambda t: t + rows, lambda t: t.detach(),
          lambda t: t.softmax(1), lambda t: t.unsqueeze(0), lambda t: t.view(6, 2, 2), lambda t: t.mean(0), lambda t: torch.zeros_like(t)):
    show([f(x).placements for x in (rows, copies)])
show((rows @ distribute_tensor(w, mesh)).placements, (copies @ distribute_tensor(w, mesh, [Shard(1)])).placements,
     (columns @ distribute_tensor(w, mesh, [Shard(0)])).placements)
show(round(rows.sum().item(), 4), bool(rows.sum() > 0), torch.equal(rows, rows.clone()), float(rows.mean()) == float(whole.mean()) or "rounded")
show(rows.is_same_size(copies), rows.is_same_size(rows[:2]), copies.is_same_size(rows.t()))
for like in (rows, copies):
    made = [like.new_empty_strided((6, 4), (4, 1), requires_grad=True), like.new_zeros((6, 4), requires_grad=True), like.new_empty_strided((3, 2), (2, 1)), like.new_ones(6, 4)]
    show([(m.placements, tuple(m.shape), m.requires_grad, m.is_leaf) for m in made], numbers(made[1]), numbers(made[3]))

# in place
for scale in (1, 2):  # what from_local makes of a leaf, or of a result, is no view
    leaf = torch.full((2, 4), 3.0, requires_grad=True)
    made = DTensor.from_local(leaf if scale == 1 else leaf * scale, mesh, [Shard(0)])
    torch.fill_(made, 7.0) if scale == 1 else made.mul_(5)
    (made * 2).sum().backward()
    show(numbers(made), leaf.detach().tolist(), leaf.grad.tolist())
inplace = distribute_tensor(whole, mesh, [Shard(0)])
inplace.add_(1).mul_(columns).zero_()
inplace += 2
inplace[0] = 5.0 if False else inplace[0]
show(numbers(inplace), inplace.placements)
inplace.copy_(copies)
show(numbers(inplace))
local = inplace.to_local()
local.fill_(3.0)
show(numbers(inplace))

# gradients
for places in ((Shard(0), Shard(1)), (Shard(0), Replicate()), (Replicate(), Shard(0)), (Shard(1), Shard(0)), (Replicate(), Shard(1)), (Replicate(), Replicate())):
    x = distribute_tensor(whole.clone().requires_grad_(), mesh, [places[0]])
    v = nn.Parameter(distribute_tensor(w, mesh, [places[1]]))
    b = nn.Parameter(distribute_tensor(torch.ones(6), mesh, [Shard(0) if places[1] == Shard(1) else Replicate()]))
    out = F.layer_norm(F.linear(x, v.t(), b).tanh(), (6,))
    loss = (out * out.softmax(-1)).sum()
    loss.backward()
    show(numbers(loss), numbers(x.grad), numbers(v.grad), numbers(b.grad), type(v.grad).__name__, v.grad.shape, v.is_leaf, isinstance(v, nn.Parameter))
x = whole.clone().requires_grad_()
d = DTensor.from_local(x[rank * 3:rank * 3 + 3], mesh, [Shard(0)])
(d.redistribute(placements=[Replicate()]).to_local() * (rank + 1)).sum().backward() if False else (d.redistribute(placements=[Replicate()]) * 3).sum().backward()
show(numbers(x.grad))
x = torch.ones(4, requires_grad=True)
DTensor.from_local(x, mesh, [Partial()]).redistribute(placements=[Shard(0)]).pow(2).sum().backward()
show(x.grad)
x = torch.ones(4, requires_grad=True)
(DTensor.from_local(x, mesh, [Replicate()]).to_local(grad_placements=[Partial()]) * (rank + 1)).sum().backward()
show(x.grad)
x = distribute_tensor(torch.ones(4), mesh, [Shard(0)]).requires_grad_()
(x.full_tensor() * torch.arange(4.0)).sum().backward()
show(x.grad.to_local(), x.grad.placements)
seen = []
x = distribute_tensor(torch.ones(4), mesh, [Shard(0)]).requires_grad_()
x.register_hook(lambda grad: seen.append((type(grad).__name__, grad.shape)))
(x * 3).sum().backward()
show(seen, x.grad.full_tensor())
x, y = (distribute_tensor(whole, mesh, [p]).requires_grad_() for p in (Shard(0), Replicate()))
for made in torch.autograd.grad((x * y).sum(), (x, y), create_graph=True):
    show(type(made).__name__, made.shape, numbers(made))
(made,) = torch.autograd.grad((x.redistribute(placements=[Shard(1)]) ** 3).sum(), x, create_graph=True)
show(numbers(torch.autograd.grad(made.sum(), x)[0]))

# memory: views, detach and to_local share it, in the graph too
d = distribute_tensor(torch.arange(8.0).reshape(4, 2), mesh, [Shard(0)])
d.detach().add_(1)
show(d.full_tensor().tolist())
d.view(8).mul_(2)
show(d.full_tensor().tolist())
d[:, 0].zero_()
d.t().add_(1)
show(d.full_tensor().tolist())
x = d.detach().clone().requires_grad_()
y = x * 2
y[:, 1].mul_(3)
y.view(8).add_(1)
(y * y).sum().backward()
show(x.grad.full_tensor().tolist())
e = x.detach().clone()
show(e.contiguous() is e, e.to(torch.float32) is e, e.view(4, 2).placements)
e.to_local().zero_()
show(e.full_tensor().tolist())
p = nn.Parameter(e)
with torch.no_grad():
    p.data.fill_(3.0)
    show(p.full_tensor().tolist(), e.full_tensor().tolist())
    p.copy_(distribute_tensor(torch.arange(8.0).reshape(4, 2), mesh))
    p.div_(2)
show(p.full_tensor().tolist(), e.full_tensor().tolist())

# layers
table = nn.Parameter(torch.randn(10, 4, generator=g))
index = torch.tensor([[1, 9, 3], [0, 5, 9]])
for p in (Shard(0), Shard(1), Replicate()):
    for q in (Shard(0), Replicate()):
        t = nn.Parameter(distribute_tensor(table.detach(), mesh, [p]))
        out = F.embedding(distribute_tensor(index, mesh, [q]), t, padding_idx=9)
        whole_out = out.redistribute(placements=[q])
        whole_out.sin().sum().backward()
        show(out.shape, numbers(whole_out), numbers(t.grad), numbers(t.grad.full_tensor().flatten()[-8:]))
labels = torch.tensor([0, 3, 1, 2, 0, 1])
for p in (Shard(0), Shard(1), Replicate()):
    x = distribute_tensor(whole, mesh, [p]).requires_grad_()
    loss = F.cross_entropy(x, distribute_tensor(labels, mesh))
    loss.backward()
    show(numbers(loss), numbers(x.grad))

# modules and optimizers
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.norm = nn.Linear(4, 8), nn.Linear(8, 2), nn.LayerNorm(8)
        self.register_buffer("scale", torch.tensor([2.0, 3.0]))

    def forward(self, x):
        return self.b(self.norm(torch.relu(self.a(x)))) * self.scale


def parted(name, module, mesh):
    if name == "a":
        for key, p in list(module.named_parameters()):
            module.register_parameter(key, nn.Parameter(distribute_tensor(p, mesh, [Shard(0)])))


for make in (lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), lambda p: torch.optim.AdamW(p, lr=0.01), lambda p: torch.optim.Adam(p, lr=0.01, foreach=False)):
    torch.manual_seed(3 + rank)
    net = Net()
    distribute_module(net, mesh, parted, input_fn=lambda m, inputs, mesh: DTensor.from_local(inputs[0], mesh, [Shard(0)]),
                      output_fn=lambda m, outputs, mesh: outputs.redistribute(placements=[Shard(0)]).to_local())
    optimizer = make(net.parameters())
    for _ in range(3):
        optimizer.zero_grad()
        out = net(whole[rank * 3:rank * 3 + 3])
        out.pow(2).sum().backward()
        total = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
    show({n: (p.placements, numbers(p)) for n, p in net.named_parameters()}, {n: b.placements for n, b in net.named_buffers()})
    show(numbers(total), {k: numbers(s) for k, s in optimizer.state[net.a.weight].items() if isinstance(s, torch.Tensor)})
state = net.state_dict()
show({k: (type(v).__name__, v.placements) for k, v in state.items()})
with torch.no_grad():
    for p in net.parameters():
        p.zero_()
net.load_state_dict({k: v.clone() for k, v in state.items()})
twin = copy.deepcopy(net)
show(numbers(twin.a.weight), twin.a.weight.placements, twin.a.weight.device_mesh == mesh)
buffer = io.BytesIO()
torch.save(rows, buffer)
buffer.seek(0)
back = torch.load(buffer, weights_only=False)
show(type(back).__name__, back.placements, numbers(back))

# a mesh of two dimensions
grid = init_device_mesh("cpu", (1, world), mesh_dim_names=("dp", "tp"))
both = distribute_tensor(whole, grid, [Shard(0), Shard(0)])
show(both.placements, numbers(both), numbers(both.redistribute(placements=[Replicate(), Shard(1)])), grid["tp"].size())
with grid["tp"]:
    show(distribute_tensor(whole, placements=[Shard(0)]).placements)

# initial values, and a module's own
torch.manual_seed(3)
initial = {"uniform_": (), "normal_": (), "trunc_normal_": (0.0, 4.0), "constant_": (3.0,), "ones_": (), "zeros_": (), "xavier_uniform_": (),
           "kaiming_uniform_": (), "kaiming_normal_": ()}
for name, given in initial.items():
    p = nn.Parameter(distribute_tensor(torch.ones(4, 3), mesh, [Shard(0)]))
    show(name, getattr(nn.init, name)(p, *given) is p, p.requires_grad, p.placements, numbers(p))
for module in (nn.Linear(4, 4), nn.LayerNorm(4), nn.Conv2d(2, 4, 3), nn.MultiheadAttention(4, 2)):
    distribute_module(module, mesh, lambda _, m, on: [m.register_parameter(n, nn.Parameter(distribute_tensor(p, on, [Shard(0)])))
                                                      for n, p in list(m.named_parameters(recurse=False))])
    getattr(module, "reset_parameters", getattr(module, "_reset_parameters", None))()
    show(type(module).__name__, *(numbers(p) for p in module.parameters()))

# functions of each rank's pieces
def product(w, x, scale):
    return w @ x * scale, scale


mapped = local_map(product, out_placements=([Partial()], None), in_placements=([Shard(1)], [Shard(0)], None), redistribute_inputs=True)
w, x = (distribute_tensor(torch.arange(8.0).view(shape), mesh, [Shard(d)]).requires_grad_() for shape, d in (((2, 4), 1), ((4, 2), 1)))
out, scale = mapped(w, x, 2.0)
show(out.placements, scale, numbers(out))
out.full_tensor().sum().backward()
show(w.grad.placements, x.grad.placements, numbers(w.grad), numbers(x.grad))


@local_map(out_placements=[Shard(0)], in_grad_placements=([Shard(0)],))
def shifted(piece):
    """With the rank's number."""
    return piece + 1


show(numbers(shifted(x.detach().redistribute(placements=[Shard(0)]))), shifted(torch.ones(2)))
attempt("lies otherwise", lambda: local_map(product, None, ([Shard(0)], [Shard(0)], None))(w, x, 2.0))
for wrong in ((None, [Shard(1)], None), ([Shard(1)], [Shard(1)]), ([Shard(1)], [Shard(1)], [Shard(1)])):
    attempt("in_placements", lambda wrong=wrong: local_map(product, None, wrong)(w, x, 2.0))
for wrong in ([Partial()], ([Partial()], [Partial()])):
    attempt("out_placements", lambda wrong=wrong: local_map(product, wrong, redistribute_inputs=True)(w, x.redistribute(placements=[Shard(0)]), 2.0))

# a program's own rules for operators
@torch.library.custom_op("of_dtensors::scaled_and_summed", mutates_args=())
def scaled_and_summed(x: torch.Tensor, w: torch.Tensor, n: int) -> tuple[torch.Tensor, torch.Tensor]:
    return x * n + w, x.sum(1)


scaled_and_summed.register_fake(lambda x, w, n: (torch.empty_like(x), x.new_empty(x.shape[0])))


@register_sharding(torch.ops.of_dtensors.scaled_and_summed.default)
def lies(x, w, n):
    show("asked", tuple(x.shape), tuple(w.shape), n)
    return [([Replicate(), Replicate()], [Replicate(), Replicate(), None]), ([Shard(0), Shard(0)], [Shard(0), Replicate(), None]),
            ([Shard(1), Partial()], [Shard(1), Shard(0), None])]


register_sharding(torch.ops.aten.cumsum.default)(
    lambda x, dim, **kwargs: [([Replicate()], [Replicate(), None]), *(([Shard(d)], [Shard(d), None]) for d in range(2) if d != dim)])
vector = torch.arange(4.0)
for x, w in ((Shard(0), Replicate()), (Replicate(), Replicate()), (Shard(1), Shard(0)), (Shard(1), Replicate()), (Shard(0), Shard(0))):
    for made in torch.ops.of_dtensors.scaled_and_summed(distribute_tensor(whole, mesh, [x]), n=3, w=distribute_tensor(vector, mesh, [w])):
        show("by a rule", made.placements, tuple(made.shape), tuple(made.to_local().shape), numbers(made))
for d in (rows, columns):
    made = torch.cumsum(d, 0)
    show("by a rule", made.placements, tuple(made.to_local().shape), numbers(made))

# refusals
attempt("mixed", lambda: rows + whole)
attempt("dims", lambda: distribute_tensor(whole, mesh, [Shard(0), Shard(1)]))
attempt("none", lambda: rows.redistribute())
attempt("partial", lambda: rows.redistribute(placements=[Partial()]))
attempt("from_local", lambda: DTensor.from_local(rows, mesh, [Shard(0)]))
attempt("again", lambda: distribute_tensor(rows, mesh, [Shard(1)]))
attempt("non-leaf", lambda: distribute_tensor(whole.clone().requires_grad_() * 2, mesh))
attempt("shape", lambda: rows @ rows)
attempt("twice", lambda: distribute_module(net, mesh))
attempt("vector", lambda: (rows * 2).requires_grad_().backward())
attempt("cross", lambda: rows + both)
dist.destroy_process_group()
