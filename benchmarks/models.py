"""Six training steps, each once in PyTorch's API and once by hand in JAX."""
from __future__ import annotations

import contextlib
import functools


def mlp(torch):
    nn = torch.nn
    model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
    return model, torch.optim.SGD(model.parameters(), lr=0.1), torch.randn(64, 784), torch.randint(0, 10, (64,)), nn.functional.cross_entropy


def quickstart(torch):
    """The MLP of PyTorch's quickstart tutorial, with its batch size and optimizer."""
    nn = torch.nn
    model = nn.Sequential(nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    return model, torch.optim.SGD(model.parameters(), lr=1e-3), torch.randn(64, 1, 28, 28), torch.randint(0, 10, (64,)), nn.functional.cross_entropy


def cnn(torch):
    nn = torch.nn
    model = nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(9216, 128), nn.ReLU(),
                          nn.Linear(128, 10))
    return model, torch.optim.SGD(model.parameters(), lr=0.05), torch.randn(64, 1, 28, 28), torch.randint(0, 10, (64,)), nn.functional.cross_entropy


def resnet(torch):
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, inputs, outputs, stride):
            super().__init__()
            self.conv1, self.bn1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs)
            self.conv2, self.bn2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs)
            self.short = nn.Identity() if inputs == outputs else nn.Conv2d(inputs, outputs, 1, stride, bias=False)

        def forward(self, x):
            y = torch.relu(self.bn1(self.conv1(x)))
            return torch.relu(self.bn2(self.conv2(y)) + self.short(x))
    layers = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    for i, (a, b) in enumerate(((16, 16), (16, 32), (32, 64))):
        layers += [Block(a if k == 0 else b, b, 2 if i and k == 0 else 1) for k in range(3)]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
    return (model, torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9), torch.randn(32, 3, 32, 32), torch.randint(0, 10, (32,)),
            nn.functional.cross_entropy)


def gpt(torch, vocabulary=65, block=64, d=128, layers=4, heads=4, batch=12):
    nn, F = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self, d, heads):
            super().__init__()
            self.ln1, self.ln2, self.heads = nn.LayerNorm(d), nn.LayerNorm(d), heads
            self.qkv, self.out, self.up, self.down = nn.Linear(d, 3 * d), nn.Linear(d, d), nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

        def forward(self, x):
            b, t, d = x.shape
            q, k, v = (y.view(b, t, self.heads, d // self.heads).transpose(1, 2) for y in self.qkv(self.ln1(x)).split(d, dim=2))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).contiguous().view(b, t, d)
            x = x + self.out(y)
            return x + self.down(F.gelu(self.up(self.ln2(x))))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.positions = nn.Embedding(vocabulary, d), nn.Embedding(block, d)
            self.blocks = nn.ModuleList([Block(d, heads) for _ in range(layers)])
            self.ln, self.head = nn.LayerNorm(d), nn.Linear(d, vocabulary, bias=False)

        def forward(self, i):
            x = self.tokens(i) + self.positions(torch.arange(i.shape[1], device=i.device))
            for block in self.blocks:
                x = block(x)
            return self.head(self.ln(x)).view(-1, vocabulary)
    model = GPT()
    x = torch.randint(0, vocabulary, (batch, block))
    return model, torch.optim.AdamW(model.parameters(), lr=1e-3), x, torch.randint(0, vocabulary, (batch * block,)), F.cross_entropy


def lstm(torch, vocabulary=100, d=128, steps=35, batch=20):
    nn = torch.nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.lstm, self.head = nn.Embedding(vocabulary, d), nn.LSTM(d, d, 2), nn.Linear(d, vocabulary)

        def forward(self, i):
            return self.head(self.lstm(self.embed(i))[0]).view(-1, vocabulary)
    model = Model()
    x, y = torch.randint(0, vocabulary, (steps, batch)), torch.randint(0, vocabulary, (steps * batch,))
    return model, torch.optim.SGD(model.parameters(), lr=0.5), x, y, nn.functional.cross_entropy


MODELS = {"mlp": mlp, "quickstart": quickstart, "cnn": cnn, "resnet": resnet, "gpt": gpt, "lstm": lstm}


def torch_step(torch, name: str, compiler=None, device: str = "cpu", autocast: bool = False):
    """A function that trains one step and returns the loss tensor; `compiler` wraps the model. All start from the CPU's random numbers;
    `autocast` is to bfloat16."""
    torch.manual_seed(0)
    model, optimizer, x, y, loss_of = MODELS[name](torch)
    if device != "cpu":
        model, x, y = model.to(device), x.to(device), y.to(device)
    if compiler is not None:
        model = compiler(model)

    def step():
        optimizer.zero_grad()
        with torch.autocast(device, torch.bfloat16) if autocast else contextlib.nullcontext():
            loss = loss_of(model(x), y)
        loss.backward()
        optimizer.step()
        return loss
    return step


# -- by hand in JAX --------------------------------------------------------------------------------------------------------


def jax_step(name: str):
    """A function that trains one jitted step, parameters donated, and returns the loss array."""
    import jax
    import numpy as np
    import optax

    import torchlike
    torchlike.manual_seed(0)
    model, _, x, y, _ = MODELS[name](torchlike)
    params = {n: jax.numpy.array(p.detach().numpy()) for n, p in model.named_parameters()}
    x, y = jax.numpy.array(x.numpy().astype(np.int32) if not x.is_floating_point() else x.numpy()), jax.numpy.array(y.numpy().astype(np.int32))
    tx = {"gpt": optax.adamw(1e-3, weight_decay=1e-2), "resnet": optax.sgd(0.05, 0.9), "lstm": optax.sgd(0.5), "mlp": optax.sgd(0.1),
          "quickstart": optax.sgd(1e-3), "cnn": optax.sgd(0.05)}[name]
    state = tx.init(params)
    forward = globals()["_jax_" + name]

    def loss_of(p):
        return optax.softmax_cross_entropy_with_integer_labels(forward(p, x), y).mean()

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def update(p, s):
        loss, g = jax.value_and_grad(loss_of)(p)
        u, s = tx.update(g, s, p)
        return optax.apply_updates(p, u), s, loss
    box = [params, state]

    def step():
        box[0], box[1], loss = update(*box)
        return loss
    return step


def _linear(p, name, x):
    y = x @ p[name + ".weight"].T
    return y + p[name + ".bias"] if name + ".bias" in p else y


def _jax_mlp(p, x):
    import jax
    for k in (0, 2):
        x = jax.nn.relu(_linear(p, str(k), x))
    return _linear(p, "4", x)


def _jax_quickstart(p, x):
    import jax
    x = x.reshape(len(x), -1)
    for k in (1, 3):
        x = jax.nn.relu(_linear(p, str(k), x))
    return _linear(p, "5", x)


def _conv(x, w, stride=1, padding="VALID"):
    from jax import lax
    return lax.conv_general_dilated(x, w, (stride, stride), padding, dimension_numbers=("NCHW", "OIHW", "NCHW"))


def _jax_cnn(p, x):
    import jax
    from jax import lax
    for k in ("0", "2"):
        x = jax.nn.relu(_conv(x, p[k + ".weight"]) + p[k + ".bias"][:, None, None])
    x = lax.reduce_window(x, -float("inf"), lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    return _linear(p, "8", jax.nn.relu(_linear(p, "6", x.reshape(len(x), -1))))


def _jax_resnet(p, x):
    import jax

    def norm(name, x):
        mean, var = x.mean((0, 2, 3), keepdims=True), x.var((0, 2, 3), keepdims=True)
        return (x - mean) * jax.lax.rsqrt(var + 1e-5) * p[name + ".weight"][:, None, None] + p[name + ".bias"][:, None, None]
    one = ((1, 1), (1, 1))
    x = jax.nn.relu(norm("1", _conv(x, p["0.weight"], 1, one)))
    for k in range(3, 12):
        stride = 2 if k in (6, 9) else 1
        y = jax.nn.relu(norm(f"{k}.bn1", _conv(x, p[f"{k}.conv1.weight"], stride, one)))
        y = norm(f"{k}.bn2", _conv(y, p[f"{k}.conv2.weight"], 1, one))
        short = _conv(x, p[f"{k}.short.weight"], stride, ((0, 0), (0, 0))) if f"{k}.short.weight" in p else x
        x = jax.nn.relu(y + short)
    return _linear(p, "14", x.mean((2, 3)))


def _jax_gpt(p, i):
    import jax
    import jax.numpy as jnp

    def norm(name, x):
        mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(var + 1e-5) * p[name + ".weight"] + p[name + ".bias"]
    x = p["tokens.weight"][i] + p["positions.weight"][:i.shape[1]]
    b, t, d = x.shape
    mask = jnp.tril(jnp.ones((t, t), bool))
    for k in range(4):
        n = f"blocks.{k}."
        q, key, v = (y.reshape(b, t, 4, d // 4).transpose(0, 2, 1, 3) for y in jnp.split(_linear(p, n + "qkv", norm(n + "ln1", x)), 3, -1))
        scores = jnp.where(mask, q @ key.swapaxes(-1, -2) / (d // 4) ** 0.5, -jnp.inf)
        y = (jax.nn.softmax(scores) @ v).transpose(0, 2, 1, 3).reshape(b, t, d)
        x = x + _linear(p, n + "out", y)
        x = x + _linear(p, n + "down", jax.nn.gelu(_linear(p, n + "up", norm(n + "ln2", x)), approximate=False))
    return (norm("ln", x) @ p["head.weight"].T).reshape(-1, 65)


def _jax_lstm(p, i):
    import jax
    import jax.numpy as jnp
    x = p["embed.weight"][i]
    for layer in range(2):
        w = p[f"lstm.weight_hh_l{layer}"].T
        gates = x @ p[f"lstm.weight_ih_l{layer}"].T + p[f"lstm.bias_ih_l{layer}"] + p[f"lstm.bias_hh_l{layer}"]

        def cell(carry, g, w=w):
            h, c = carry
            a, f, n, o = jnp.split(g + h @ w, 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(a) * jnp.tanh(n)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h
        zero = jnp.zeros((x.shape[1], 128))
        x = jax.lax.scan(cell, (zero, zero), gates)[1]
    return _linear(p, "head", x).reshape(-1, 100)
