"""Small programs that use a GPU, run by real torch and by torchlike side by side on a machine that has one.

    python tests/device_programs.py [NAME ...]    prints the lines that differ, of all programs or of these
    python tests/device_programs.py --posing      torchlike alone, a second CPU device in the GPU's place: no program may fail unexpectedly
    ... --compiled                                every program compiled at its first sight; else what is small runs on the host
"""
from __future__ import annotations

import copy
import io
import os
import pickle
import sys
import warnings
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # two frameworks share the card
if "--posing" in sys.argv:
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"

PROGRAMS = []


def program(f):
    PROGRAMS.append(f)
    return f


def refused(f):
    try:
        return f()
    except Exception as error:  # the class and the words are compared
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"


@program
def devices(torch):
    x = torch.arange(6.).cuda()
    yield x.device, x.is_cuda, x.get_device(), str(x.device), x.cpu().device, x.to("cpu").is_cuda
    yield torch.ones(2, device="cuda").device, torch.ones(2, device="cuda:0").device, torch.ones(2, device=0).device
    yield torch.zeros_like(x).device, x.new_zeros(3).device, x.new_tensor([1]).device, torch.rand_like(x).device, x.new_empty(2).device
    yield torch.device("cuda") == x.device, torch.device("cuda", 0) == x.device, x.to(torch.device("cuda")) is x, x.cuda() is x
    yield torch.cuda.is_available(), torch.cuda.device_count(), torch.cuda.current_device(), torch.cuda.is_initialized()
    yield torch.cuda.get_device_name(), torch.cuda.get_device_capability(), torch.cuda.get_device_properties(0).name
    yield torch.tensor([1, 2], device="cuda"), torch.tensor(3.5, device="cuda"), x.reshape(2, 3), x.requires_grad_()
    yield x.type(), torch.cuda.FloatTensor, isinstance(x, torch.cuda.FloatTensor)
    with torch.device("cuda"):
        yield torch.ones(1).device, torch.tensor(1).device, torch.nn.Linear(1, 1).weight.device, torch.arange(3).device
    torch.set_default_device("cuda")
    yield torch.eye(2), torch.get_default_device(), torch.linspace(0, 1, 3)
    torch.set_default_device(None)
    yield torch.ones(1).device


@program
def errors(torch):
    x, y = torch.ones(2, 3, device="cuda"), torch.ones(2, 3)
    yield refused(lambda: x + y)
    yield refused(lambda: x @ y.T)
    yield refused(lambda: torch.cat([x, y]))
    yield refused(x.numpy)
    yield refused(lambda: x.requires_grad_().numpy())
    yield refused(lambda: torch.ones(1, device="cuda:7"))
    yield refused(lambda: torch.nn.functional.linear(x, torch.ones(4, 3)))
    yield refused(lambda: torch.nn.functional.embedding(torch.tensor([1]), x))
    yield refused(lambda: torch.where(x > 0, x, y))
    yield refused(lambda: x.detach().add_(y))
    yield refused(lambda: x[torch.tensor([0], device="cuda"), torch.tensor([1])])
    yield refused(lambda: y[torch.tensor([0], device="cuda")])
    yield refused(lambda: torch.nn.functional.cross_entropy(x, torch.tensor([0, 1])))
    yield refused(lambda: torch.ones(1, device="cuda").copy_(torch.tensor([5.])))
    yield x + torch.tensor(2.), torch.tensor(2.) * x, x.detach().add_(torch.tensor(1.)), x[torch.tensor([1])], x[torch.tensor([True, False])]


@program
def views_and_edits(torch):
    x = torch.arange(12., device="cuda").view(3, 4)
    v = x[1:, ::2]
    v.mul_(10)
    x.T[0] = -1
    yield x, v, v.stride(), v.data_ptr() == x.data_ptr() + 16, x._version
    x[x > 50] = 0
    x[[0, 2], 1:3] += 1
    yield x, x.flatten()[::3], x.masked_select(x > 0), x.nonzero(), x.max(1), x.sort(1, descending=True).values
    y = x.clone()
    y.index_add_(0, torch.tensor([0, 0], device="cuda"), torch.ones(2, 4, device="cuda"))
    y.scatter_(1, torch.tensor([[0], [1], [2]], device="cuda"), 7.)
    yield y, y.cumsum(1), y.unique(), torch.bincount(torch.tensor([1, 1, 3], device="cuda")), y[0].topk(2), y.argmax(), y.std(), y.var(0)
    yield x.cpu().add_(1), x, x.double().sum().item(), x.tolist(), len(x), bool((x == x).all()), x.to(torch.bfloat16)


@program
def training(torch):
    torch.manual_seed(0)
    nn = torch.nn
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 10))
    x, y = torch.randn(16, 1, 8, 8), torch.randint(0, 10, (16,))
    torch.backends.cudnn.allow_tf32 = False
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    model.to("cuda")
    x, y = x.to("cuda", non_blocking=True), y.cuda(non_blocking=True)
    losses = []
    for _ in range(8):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(round(loss.item(), 4))
    yield losses, {n: b.device for n, b in model.named_buffers()}, loss.grad_fn is not None, next(iter(optimizer.state.values()))["exp_avg"].device
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    for where in (None, "cpu", "cuda", torch.device("cuda:0")):
        file.seek(0)
        found = torch.load(file, map_location=where)
        yield found["model"]["0.weight"].device, found["optimizer"]["state"][0]["exp_avg"].device
    model.eval()
    again = copy.deepcopy(model).cpu()
    yield torch.allclose(again(x.cpu()), model(x).cpu(), atol=1e-4), next(again.parameters()).device, next(model.parameters()).device
    yield pickle.loads(pickle.dumps(x)).device, model.half()(x.half()).dtype
    torch.backends.cudnn.allow_tf32 = True


@program
def mixed_precision(torch):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.LayerNorm(64), torch.nn.Linear(64, 4)).cuda()
    x = torch.ones(8, 32).cuda() / 8
    scaler = torch.amp.GradScaler("cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for dtype in (torch.float16, torch.bfloat16):
        for _ in range(3):
            optimizer.zero_grad()
            with torch.autocast("cuda", dtype):
                out = model(x)
                loss = out.float().pow(2).mean()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        yield out.dtype, round(loss.item(), 2), scaler.get_scale(), next(model.parameters()).grad.dtype
    with torch.cuda.amp.autocast():
        yield (x @ x.T).dtype, torch.nn.functional.softmax(x @ x.T, 1).dtype


@program
def products(torch):
    torch.manual_seed(0)
    a, b = torch.randn(256, 512), torch.randn(512, 128)
    exact = a.double() @ b.double()

    def digits(c):
        return "exact" if (c.cpu().double() - exact).norm() / exact.norm() < 1e-5 else "TF32"
    yield digits(a.cuda() @ b.cuda()), torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    yield digits(a.cuda() @ b.cuda()), torch.backends.cuda.matmul.allow_tf32
    torch.set_float32_matmul_precision("highest")
    yield digits(torch.nn.functional.linear(a.cuda(), b.T.cuda())), digits(torch.einsum("ij,jk->ik", a.cuda(), b.cuda()))
    x, w = torch.randn(2, 32, 16, 16), torch.randn(32, 32, 3, 3)
    exact = torch.nn.functional.conv2d(x.double(), w.double())
    yield digits(torch.nn.functional.conv2d(x.cuda(), w.cuda()))
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        yield digits(torch.nn.functional.conv2d(x.cuda(), w.cuda()))


@program
def attention(torch):
    torch.manual_seed(0)
    F = torch.nn.functional
    q, k, v = (torch.randn(2, 4, 64, 32).cuda().requires_grad_() for _ in range(3))
    for dtype, digits in ((torch.float32, 3), (torch.bfloat16, 1)):
        for causal in (False, True):
            out = F.scaled_dot_product_attention(q.to(dtype), k.to(dtype), v.to(dtype), is_causal=causal)
            yield out.dtype, round(out.float().abs().mean().item(), digits)
            yield [round(g.float().abs().mean().item(), digits) for g in torch.autograd.grad(out.float().pow(2).sum(), (q, k, v))]
    mask = torch.ones(64, 64, dtype=torch.bool, device="cuda").tril()
    out = F.scaled_dot_product_attention(q, k, v, mask)
    yield (out - F.scaled_dot_product_attention(q, k, v, is_causal=True)).abs().max().item() < 1e-5
    layer = torch.nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True).cuda()
    out = layer(q[:, 0])
    out.sum().backward()
    yield out.shape, out.device, torch.isfinite(layer.linear1.weight.grad).all()


@program
def recurrent(torch):
    torch.manual_seed(0)
    for kind in ("LSTM", "GRU", "RNN"):
        layer, x = getattr(torch.nn, kind)(8, 16, 2, bidirectional=True), torch.randn(5, 3, 8)
        layer, x = layer.cuda(), x.cuda()
        y, h = layer(x)
        y.pow(2).sum().backward()
        yield y.shape, y.device, round(y.abs().mean().item(), 3), round(layer.weight_hh_l0.grad.abs().mean().item(), 3)
    packed = torch.nn.utils.rnn.pack_padded_sequence(x, torch.tensor([5, 3, 2]))
    y, h = layer(packed)
    yield y.data.device, y.batch_sizes.device, h.shape


@program
def streams_and_memory(torch):
    cuda = torch.cuda
    x = torch.ones(1 << 20, device="cuda")
    start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    start.record()
    for _ in range(3):
        x = x * 2
    end.record()
    cuda.synchronize()
    yield start.elapsed_time(end) >= 0, end.query(), x[0].item()
    stream = cuda.Stream()
    with cuda.stream(stream):
        y = x + 1
    stream.wait_stream(cuda.current_stream())
    cuda.current_stream().wait_stream(stream)
    yield y[0].item(), cuda.memory_allocated() >= 8 << 20, cuda.max_memory_allocated() >= cuda.memory_allocated(), cuda.memory_reserved() > 0
    free, total = cuda.mem_get_info()
    yield 0 < free <= total, cuda.get_device_properties(0).total_memory > 1 << 30, isinstance(cuda.memory_summary(), str)
    before = cuda.memory_allocated()
    z = torch.zeros(1 << 22, device="cuda")
    z.add_(1)
    cuda.synchronize()
    grown = cuda.memory_allocated() - before
    del z
    cuda.empty_cache()
    yield grown, cuda.memory_allocated() - before
    cuda.reset_peak_memory_stats()
    yield torch.ones(3).pin_memory().is_pinned(), x.is_pinned(), torch.cuda.is_bf16_supported()
    graph = torch.cuda.CUDAGraph()
    static = torch.ones(4, device="cuda")
    side = cuda.Stream()
    with cuda.stream(side):
        out = static * 2
    cuda.synchronize()
    with torch.cuda.graph(graph):
        out = static * 3
    static.fill_(5)
    graph.replay()
    yield out.tolist()


@program
def random_numbers(torch):
    torch.manual_seed(0)
    a = torch.rand(1000, device="cuda")
    torch.manual_seed(0)
    yield torch.equal(a, torch.rand(1000, device="cuda")), 0.45 < a.mean().item() < 0.55, torch.randperm(5, device="cuda").device
    g = torch.Generator(device="cuda").manual_seed(3)
    b = torch.randn(1000, device="cuda", generator=g)
    g.manual_seed(3)
    yield torch.equal(b, torch.randn(1000, device="cuda", generator=g)), g.device, abs(b.std().item() - 1) < 0.1
    state = torch.cuda.get_rng_state()
    c = torch.randint(0, 9, (50,), device="cuda")
    torch.cuda.set_rng_state(state)
    yield torch.equal(c, torch.randint(0, 9, (50,), device="cuda")), state.device, c.device
    d = torch.nn.functional.dropout(torch.ones(10000, device="cuda"), 0.3)
    yield sorted(set(d.tolist())) == [0.0, d.max().item()], abs((d == 0).float().mean().item() - 0.3) < 0.03
    e = torch.empty(1000, device="cuda").normal_(2, 3)
    yield abs(e.mean().item() - 2) < 0.5, torch.bernoulli(torch.full((4,), 1.0, device="cuda")), torch.multinomial(torch.tensor([0., 1.], device="cuda"), 1)
    yield refused(lambda: torch.rand(2, device="cuda", generator=torch.Generator()))


@program
def compiled(torch):
    @torch.compile
    def f(x, y):
        return (x.sin() * y).sum(1)
    x = torch.arange(12., device="cuda").view(3, 4)
    yield f(x, x), f(x + 1, x).device
    step = torch.compile(torch.nn.Linear(4, 2).cuda())
    yield step(x).shape, step(x).device
    yield torch.func.vmap(lambda v: v @ v)(x), torch.func.grad(lambda v: (v ** 2).sum())(x)


@program
def linear_algebra(torch):
    torch.manual_seed(0)
    a = torch.randn(5, 5)
    a = (a @ a.T + 5 * torch.eye(5)).cuda()
    yield torch.linalg.cholesky(a), torch.linalg.inv(a), torch.linalg.solve(a, a[:, 0]), torch.linalg.eigvalsh(a), torch.linalg.svdvals(a)
    yield torch.linalg.det(a), torch.linalg.slogdet(a), torch.linalg.matrix_norm(a), torch.linalg.qr(a).R.abs(), torch.linalg.lstsq(a, a).solution.round()
    yield torch.linalg.eigvals(a).real.sort().values, torch.linalg.matrix_exp(a / 10), torch.linalg.pinv(a), torch.fft.fft(a[0]), torch.fft.rfft2(a)
    yield torch.special.gammaln(a.abs() + 1), torch.erfinv(a / 20), torch.special.i0(a), torch.lgamma(a.abs() + 1), torch.digamma(a.abs() + 1)


@program
def data(torch):
    set_of = torch.utils.data.TensorDataset(torch.arange(10.), torch.arange(10))
    loader = torch.utils.data.DataLoader(set_of, batch_size=4, pin_memory=True)
    yield [(x.cuda(non_blocking=True).sum().item(), y.to("cuda").device) for x, y in loader]
    x = torch.ones(3, device="cuda")
    yield torch.from_dlpack(x), torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(x)).device
    model = torch.nn.DataParallel(torch.nn.Linear(3, 2).cuda())
    yield model(x[None]).shape, model(x[None]).device
    yield torch.sparse_coo_tensor([[0, 1]], [1., 2.], (2,), device="cuda").to_dense(), torch.nested.nested_tensor([x, x[:2]]).device


def text(value) -> str:
    if isinstance(value, (list, tuple)):
        return "(" + ", ".join(map(text, value)) + ")"
    return repr(value).replace("torchlike.", "torch.")


def lines(torch, f):
    """The lines of a program; its last names what ended it, if something did."""
    try:
        for values in f(torch):
            yield from map(text, values if type(values) is tuple else (values,))
    except Exception as error:
        yield f"ENDED BY {type(error).__name__}: {str(error)[:300]}"


def main() -> int:
    import torchlike
    posing = "--posing" in sys.argv
    if posing:
        from device_cases import pose
        pose()
        torch = None
    else:
        import torch
    if "--compiled" in sys.argv:
        from device_cases import compile_at_once
        compile_at_once()
    wrong, chosen = 0, [name for name in sys.argv[1:] if not name.startswith("--")]
    for f in (f for f in PROGRAMS if not chosen or f.__name__ in chosen):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ours = list(lines(torchlike, f))
            theirs = None if posing else list(lines(torch, f))
        if posing:
            ended = [line for line in ours if "ENDED" in line]
            wrong += bool(ended)
            print(f.__name__, *(ended if ended else (f"{len(ours)} lines",)))
            continue
        print(f"{f.__name__}: {len(ours)} lines, torch {len(theirs)}", flush=True)
        for i in range(max(len(ours), len(theirs))):
            a, b = ([*x, *["-"] * 99][i] for x in (theirs, ours))
            if a != b:
                wrong += 1
                print(f"  {i} torch: {a[:400]}\n  {' ' * len(str(i))} ours:  {b[:400]}")
    print(f"{wrong} lines differ")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
