"""Plain definitions of the operations, run in float64 with JAX's own derivatives. Shares no code with the package."""
import jax
import jax.numpy as jnp


def layer_norm(x, weight=None, bias=None, residual=None, axes=1, eps=1e-5):
    total = x if residual is None else x + residual
    over = tuple(range(-axes, 0))
    y = (total - total.mean(over, keepdims=True)) / jnp.sqrt(total.var(over, keepdims=True) + eps)
    y = y * (1 if weight is None else weight) + (0 if bias is None else bias)
    return y if residual is None else (y, total)


def rms_norm(x, weight=None, residual=None, axes=1, eps=1e-6):
    total = x if residual is None else x + residual
    y = total / jnp.sqrt((total ** 2).mean(tuple(range(-axes, 0)), keepdims=True) + eps)
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


def expected(spec, arrays: dict, cotangents: list):
    """Outputs (a list) and gradients by name, in float64."""
    with jax.enable_x64(True):
        widen = lambda a: a.astype("float64") if jnp.issubdtype(a.dtype, jnp.floating) else a
        wide = {k: widen(v) for k, v in arrays.items()}
        call = lambda d: jax.tree.leaves(globals()[spec.op](**{**wide, **d}, **spec.static))
        out, pull = jax.vjp(call, {n: wide[n] for n in spec.gradients})
        return out, pull([widen(c).astype(o.dtype) for c, o in zip(cotangents, out, strict=True)])[0]
