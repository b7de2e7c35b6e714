"""Gradients through calls between three workers: rank 0 prints what it sees. The same under torch and torchlike."""
import os
import threading

import torch
from torch import nn
from torch.distributed import autograd, rpc
from torch.distributed.nn import RemoteModule
from torch.distributed.optim import DistributedOptimizer
from torch.utils.checkpoint import checkpoint

RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def product(x, y):
    return x * y


def nested(x, y, to):
    """A product there, a sum here."""
    return rpc.rpc_sync(to, product, args=(x, y)) + x.sin()


def round_trips(x, n):
    here = rpc.get_worker_info().id
    return x * 2 if n == 0 else rpc.rpc_sync(f"worker{(here + 1) % WORLD}", round_trips, args=(x + 1, n - 1)) * x


def with_parameter(rref, x):
    return rref.local_value() * x


def dense(x):
    return x.to_dense() * 3


def two(x):
    return x * 2, [x + 1, 3], {"a": x.detach()}


def named(x):
    return x.grad_fn.name(), x.is_leaf, x.requires_grad


def context_here():
    return autograd._current_context()._context_id()


def gradients(context):
    return sorted((p.tolist(), g.tolist()) for p, g in autograd.get_gradients(context).items())


def known(context):
    try:
        return autograd._retrieve_context(context)._context_id() == context
    except RuntimeError as error:
        return str(error).splitlines()[0]


def error_of(run):
    """Its class alone: the text of a binding's TypeError is its own."""
    try:
        run()
    except Exception as error:
        return type(error).__name__


class Fails(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        raise ValueError("in backward")


def failing(x):
    return Fails.apply(x)


def parameter(*numbers):
    return nn.Parameter(torch.tensor(numbers))


class Net(nn.Module):
    def __init__(self, wide, bias=True):
        super().__init__()
        self.linear = nn.Linear(2, wide, bias=bias)
        with torch.no_grad():
            self.linear.weight.copy_(torch.arange(2.0 * wide).view(wide, 2) / 10)
            if bias:
                self.linear.bias.zero_()

    def forward(self, x, scale=1.0):
        return torch.tanh(self.linear(x)) * scale


def training_of(rref):
    return rref.local_value().training


def run_module(module, x):
    return module.forward(x)


def show(what, run):
    try:
        found = run()
    except Exception as error:
        found = type(error).__name__, str(error).splitlines()[0]
    print(what, found, flush=True)


def passes():
    a, b = torch.tensor([2.0, 3.0], requires_grad=True), torch.tensor([5.0, 7.0], requires_grad=True)

    def found(context):
        grads = autograd.get_gradients(context)
        return [grads[t].tolist() if t in grads else None for t in (a, b)]

    def one(what, forward, count=1):
        with autograd.context() as context:
            out = forward()
            for k in range(count):
                autograd.backward(context, [o.sum() for o in out], retain_graph=k + 1 < count)
            show(what, lambda: (found(context), [rpc.rpc_sync(k, gradients, args=(context,)) for k in (1, 2)]))
    one("a call", lambda: [rpc.rpc_sync("worker1", product, args=(a, b))])
    one("an operator", lambda: [rpc.rpc_sync("worker1", torch.mul, args=(a, b))])
    one("to itself", lambda: [rpc.rpc_sync("worker0", product, args=(a, b))])
    one("later", lambda: [rpc.rpc_async("worker1", product, args=(a, b)).wait() * a])
    one("a reference", lambda: [rpc.remote("worker1", product, args=(a, b)).to_here() + b])
    one("nested", lambda: [rpc.rpc_sync("worker1", nested, args=(a, b, "worker2"))])
    one("nested, and back here", lambda: [rpc.rpc_sync("worker1", nested, args=(a, b, "worker0"))])
    one("round trips", lambda: [rpc.rpc_sync("worker1", round_trips, args=(a, 5))])
    one("two calls", lambda: [rpc.rpc_sync("worker1", product, args=(a, b)) * rpc.rpc_sync("worker2", product, args=(a, a))])
    one("two roots", lambda: [rpc.rpc_sync("worker1", product, args=(a, b)), a * b])
    one("no call", lambda: [a * b])
    one("several results", lambda: [rpc.rpc_sync("worker1", two, args=(a,))[0], rpc.rpc_sync("worker1", two, args=(b,))[1][0]])
    one("backward twice", lambda: [rpc.rpc_sync("worker1", nested, args=(a, b, "worker2"))], 2)
    one("one that needs none", lambda: [rpc.rpc_sync("worker1", product, args=(a, torch.ones(2)))])
    one("of other dtypes", lambda: [rpc.rpc_sync("worker1", product, args=(a.double(), b.double())).float()])
    one("checkpointed", lambda: [checkpoint(torch.sin, rpc.rpc_sync("worker1", product, args=(a, b)), use_reentrant=False)])
    one("of a sparse tensor", lambda: [rpc.rpc_sync("worker1", dense, args=(a.to_sparse(),)) * b])
    p = rpc.remote("worker2", parameter, args=(1.0, 4.0))
    one("a parameter there", lambda: [rpc.rpc_sync("worker2", with_parameter, args=(p, a)), rpc.rpc_sync("worker2", with_parameter, args=(p, b))])
    print("no .grad", a.grad, b.grad, p.to_here().grad)
    hooked, shown = torch.ones(2, requires_grad=True), []
    hooked.register_hook(lambda g: shown.append(g.tolist()))
    with autograd.context() as context:
        autograd.backward(context, [rpc.rpc_sync("worker1", product, args=(hooked * 3, b)).sum()])
    print("hooks", shown)


def contexts():
    a, b = torch.tensor([2.0], requires_grad=True), torch.tensor([5.0], requires_grad=True)
    show("no context", lambda: autograd._current_context())
    show("no context there", lambda: rpc.rpc_sync("worker1", product, args=(a, b)).requires_grad)
    with autograd.context() as context:
        print("the same there", rpc.rpc_sync("worker1", context_here) == context == context_here())
        show("in a context", lambda: autograd.context().__enter__())
        out = rpc.rpc_sync("worker1", product, args=(a, b))
        show("functions", lambda: (out.grad_fn.name(), rpc.rpc_sync("worker1", named, args=(a,))))
        here = autograd._current_context()
        show("counts", lambda: (len(here._send_functions()), len(here._recv_functions()), sorted(here._known_worker_ids())))
        send = next(iter(here._send_functions().values()))
        show("send", lambda: (send.name(), [f.name() for f, _ in send.next_functions]))
        show("known", lambda: rpc.rpc_sync("worker1", known, args=(context,)))
        show("others", lambda: [run() for run in (lambda: known(context + 1 << 50),)])
    print("forgotten", known(context) == f"Could not find autograd context with id: {context}")
    with autograd.context() as context:
        show("no roots", lambda: autograd.backward(context, []))
        show("no graph", lambda: autograd.backward(context, [torch.ones(1)]))
        show("no scalar", lambda: autograd.backward(context, [a.expand(2) * 2]))
        show("a leaf", lambda: autograd.backward(context, [a]))
        for call in (lambda: autograd.backward("a", []), lambda: autograd.backward(context, a), lambda: autograd.get_gradients("a"), lambda: autograd._is_valid_context("a")):
            print("no number", error_of(call))
        show("unknown", lambda: autograd.backward(77, [a * 2]))
        out = rpc.rpc_sync("worker1", product, args=(a, b)).sum()
        autograd.backward(context, [out])
        show("again", lambda: autograd.backward(context, [out]))
    with autograd.context() as context:
        out = rpc.rpc_sync("worker1", failing, args=(a,)).sum()
        show("fails there", lambda: autograd.backward(context, [out]))

    def thread(k, results):
        with autograd.context() as context:
            x = torch.full((2,), float(k), requires_grad=True)
            autograd.backward(context, [rpc.rpc_sync(f"worker{1 + k % 2}", nested, args=(x, x, "worker0")).sum()])
            results[k] = autograd.get_gradients(context)[x].tolist() == (2 * x + x.cos()).tolist()
    results = {}
    threads = [threading.Thread(target=thread, args=(k, results)) for k in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    print("threads", sorted(results.items()))
    with autograd.context() as context:
        user = rpc.remote("worker1", product, args=(a, b))
        show("backward of a reference", lambda: (user.backward(context), autograd.get_gradients(context)[a], autograd.get_gradients(context)[b]))
        show("its context", lambda: user.backward())
    with autograd.context() as context:
        rpc.RRef(a * 3).backward(context)
        show("and of its own", lambda: autograd.get_gradients(context)[a])
    rpc.RRef(a * 3).backward()
    print("an ordinary one", a.grad)
    show("no tensor", lambda: rpc.RRef(3).backward())


def optimizers():
    refs = [rpc.remote(f"worker{k % WORLD}", parameter, args=(1.0 + k, 2.0 - k)) for k in range(5)]
    for kind, settings in ((torch.optim.SGD, {"lr": 0.1}), (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9}), (torch.optim.Adam, {"lr": 0.01}), (torch.optim.AdamW, {}),
                           (torch.optim.Adagrad, {"lr": 0.1})):
        optimizer = DistributedOptimizer(kind, refs, **settings)
        for _ in range(3):
            with autograd.context() as context:
                x = torch.tensor([1.0, -2.0])
                loss = sum(rpc.rpc_sync(r.owner(), with_parameter, args=(r, x)).pow(2).sum() for r in refs[:4])
                autograd.backward(context, [loss])
                optimizer.step(context)
        print(kind.__name__, [[round(v, 4) for v in r.to_here().tolist()] for r in refs])
    show("unknown context", lambda: optimizer.step(77))


def modules():
    m = RemoteModule("worker1/cpu", Net, (3,), {"bias": False})
    other = RemoteModule("rank:2", nn.Linear, (3, 1))
    x = torch.tensor([[1.0, -1.0]], requires_grad=True)
    optimizer = DistributedOptimizer(torch.optim.SGD, m.remote_parameters() + other.remote_parameters(), lr=0.5)
    with autograd.context() as context:
        out = m(x, scale=2.0)
        autograd.backward(context, [out.sum()])
        optimizer.step(context)
        show("a module", lambda: (out.tolist(), autograd.get_gradients(context)[x].tolist()))
    show("after a step", lambda: [[round(v, 5) for v in row] for row in m.forward_async(x).wait().tolist()])
    show("parameters", lambda: [(p.owner_name(), tuple(p.to_here().shape)) for p in m.remote_parameters() + other.remote_parameters()])
    show("sent", lambda: rpc.rpc_sync("worker2", run_module, args=(m, x)).tolist() == m(x).tolist())
    m.eval()
    show("eval", lambda: rpc.rpc_sync("worker1", training_of, args=(m.get_module_rref(),)))
    m.train()
    show("train", lambda: rpc.rpc_sync("worker1", training_of, args=(m.get_module_rref(),)))
    show("one more", lambda: RemoteModule.init_from_module_rref("worker1", m.get_module_rref()).forward(x).tolist() == m(x).tolist())
    show("not a module", lambda: RemoteModule("worker1", dict)(x))
    for name in ("parameters", "state_dict", "cpu", "zero_grad", "modules"):
        show(name, lambda name=name: getattr(m, name)())
    for name in ("worker1/cpu/x", "/cpu", "rank:a/cpu", "worker9"):
        show(name, lambda name=name: RemoteModule(name, Net, (3,)))


if RANK == 0:
    show("not begun", lambda: autograd.context().__enter__())
rpc.init_rpc(f"worker{RANK}", rank=RANK, world_size=WORLD)
if RANK == 0:
    passes()
    contexts()
    optimizers()
    modules()
rpc.shutdown()
