"""Plain definitions of the operations, run in float64 with JAX's own derivatives. Shares no code with the package."""

import jax
import jax.numpy as jnp
import kernel_oracle as oracle


def layer_norm(x, weight=None, bias=None, residual=None, axes=1, eps=1e-5):
    total = x if residual is None else x + residual
    over = tuple(range(-axes, 0))
    y = (total - total.mean(over, keepdims=True)) / jnp.sqrt(total.var(over, keepdims=True) + eps)
    y = y * (1 if weight is None else weight) + (0 if bias is None else bias)
    return y if residual is None else (y, total)


def rms_norm(x, weight=None, residual=None, axes=1, eps=1e-6):
    total = x if residual is None else x + residual
    y = total / jnp.sqrt((total**2).mean(tuple(range(-axes, 0)), keepdims=True) + eps)
    y = y * (1 if weight is None else weight)
    return y if residual is None else (y, total)


def group_norm(x, groups, weight=None, bias=None, eps=1e-5):
    split = x.reshape(x.shape[0], groups, -1)
    y = (split - split.mean(-1, keepdims=True)) / jnp.sqrt(split.var(-1, keepdims=True) + eps)
    channel = lambda a: a.reshape(1, -1, *[1] * (x.ndim - 2))
    return y.reshape(x.shape) * channel(weight) + channel(bias)


def cross_entropy(logits, target, class_weight=None, ignore_index=-100, label_smoothing=0.0, reduction="mean"):
    classes = logits.shape[-1]
    logp = logits - jnp.log(jnp.exp(logits).sum(-1, keepdims=True))
    weight = jnp.ones(classes) if class_weight is None else class_weight
    wanted = (1 - label_smoothing) * (jnp.arange(classes) == target[:, None]) + label_smoothing / classes
    kept = target != ignore_index
    loss = -(logp * wanted * weight).sum(-1) * kept
    if reduction == "none":
        return loss
    return loss.sum() / (weight[target] * kept).sum() if reduction == "mean" else loss.sum()


def linear_cross_entropy(x, weight, target, bias=None, chunk=None, **options):
    return cross_entropy(x @ weight.T + (0 if bias is None else bias), target, **options)


def grouped_mm(x, weight, group_sizes):
    ends = jnp.cumsum(group_sizes)
    row = jnp.arange(x.shape[0])[:, None]
    member = ((row >= ends - group_sizes) & (row < ends)).astype(x.dtype)
    return jnp.einsum("mg,mk,gkn->mn", member, x, weight)


def recurrent_layer(mode, x, h0, c0, w_ih, w_hh, b_ih=None, b_hh=None, lengths=None, reverse=False):
    sigmoid = lambda a: 1 / (1 + jnp.exp(-a))
    b_ih, b_hh = (0 if b is None else b for b in (b_ih, b_hh))
    h, c, ys = h0, c0, [None] * len(x)
    for t in reversed(range(len(x))) if reverse else range(len(x)):
        a, b = x[t] @ w_ih.T + b_ih, h @ w_hh.T + b_hh
        if mode == "lstm":
            i, f, g, o = jnp.split(a + b, 4, 1)
            new_c = sigmoid(f) * c + sigmoid(i) * jnp.tanh(g)
            new_h = sigmoid(o) * jnp.tanh(new_c)
        elif mode == "gru":
            (ar, az, an), (br, bz, bn) = jnp.split(a, 3, 1), jnp.split(b, 3, 1)
            z = sigmoid(az + bz)
            new_h = (1 - z) * jnp.tanh(an + sigmoid(ar + br) * bn) + z * h
        else:
            new_h = jnp.tanh(a + b) if mode == "rnn_tanh" else jax.nn.relu(a + b)
        alive = jnp.ones((len(h), 1), bool) if lengths is None else (t < lengths)[:, None]
        h = jnp.where(alive, new_h, h)
        c = jnp.where(alive, new_c, c) if mode == "lstm" else None
        ys[t] = jnp.where(alive, h, 0)
    return (jnp.stack(ys), h, c) if mode == "lstm" else (jnp.stack(ys), h)


def gated_linear(x, gate, up, gate_bias=0, up_bias=0, activation="silu"):
    g, u = x @ gate.T + gate_bias, x @ up.T + up_bias
    sigmoid = 1 / (1 + jnp.exp(-g))
    return (
        u
        * {
            "silu": g * sigmoid,
            "sigmoid": sigmoid,
            "relu": g * (g > 0),
            "gelu": g * (1 + jax.lax.erf(g / 2**0.5)) / 2,
            "gelu_tanh": g * (1 + jnp.tanh((2 / jnp.pi) ** 0.5 * (g + 0.044715 * g**3))) / 2,
        }[activation]
    )


_known: dict = {}


def expected(spec, arrays: dict, cotangents: list):
    """Outputs (a list) and gradients by name, in float64. One program per spec, which several tests share."""
    widen = lambda a: a.astype("float64") if jnp.issubdtype(a.dtype, jnp.floating) else a

    def both(arrays, cotangents):
        wide = {k: widen(v) for k, v in arrays.items()}
        call = lambda d: jax.tree.leaves(globals()[spec.op](**{**wide, **d}, **spec.static))
        out, pull = jax.vjp(call, {n: wide[n] for n in spec.gradients})
        return out, pull([widen(c).astype(o.dtype) for c, o in zip(cotangents, out, strict=True)])[0]

    key = (spec.op, spec.name)
    if key not in _known:
        with jax.enable_x64(True):
            _known[key] = oracle.jit(both)(arrays, cotangents)
    return _known[key]
