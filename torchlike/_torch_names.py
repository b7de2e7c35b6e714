"""What PyTorch calls the functions of `torch`, and in which form their Python parts hand a call on, to `torch.fx` and to classes that take functions over.

A graph shows `torch._C._nn.gelu` for `torch.nn.functional.gelu`, which is that function of the C++ part, and
`torch.functional.split` for `torch.split`, which is written in Python. Functions written in Python pass their required
arguments by position and the others, defaults included, by name; those of the C++ part are recorded as they were called.
"""
from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any

from . import functional as _functional
from ._exchange import exchanges
from ._plainly import plain_function
from ._public import FUNCTIONS
from ._tensor import Tensor

# names of torch.nn.functional that are functions of PyTorch's C++ part, by where they are found there
_FROM_TORCH = frozenset("""adaptive_avg_pool1d avg_pool1d bilinear celu_ channel_shuffle conv1d conv2d conv3d conv_tbc conv_transpose1d
    conv_transpose2d conv_transpose3d cosine_similarity hardshrink native_channel_shuffle pairwise_distance pdist pixel_shuffle pixel_unshuffle
    prelu relu_ rrelu_ selu_ threshold_""".split())
NN = {name: name for name in """avg_pool2d avg_pool3d elu_ gelu hardtanh_ leaky_relu_ linear one_hot scaled_dot_product_attention softplus
    softshrink""".split()} | {"log_sigmoid": "logsigmoid"}
# names of torch that are written in Python
IN_PYTHON = {**dict.fromkeys(_functional.__all__, "functional"), "istft": "", "pca_lowrank": "_lowrank", "svd_lowrank": "_lowrank", "lobpcg": "_lobpcg"}
# the arguments that torch hands on by name where these are not just those with defaults
_BY_NAME = {"norm": "p dim keepdim out dtype", "tensordot": "dims out", "normalize": "p dim eps out", "l1_loss": "size_average reduce reduction",
            "multi_head_attention_forward": "training key_padding_mask need_weights attn_mask is_causal use_separate_proj_weight q_proj_weight "
                                            "k_proj_weight v_proj_weight static_k static_v average_attn_weights"}
_UPSAMPLING = {"upsample": {}, "upsample_nearest": {"mode": "nearest"}, "upsample_bilinear": {"mode": "bilinear", "align_corners": True}}
_METHODS_IN_PYTHON = frozenset("backward istft lu norm split stft unique unique_consecutive".split())
_METHODS = ("tanh", "sigmoid")  # of torch.nn.functional: they call the method
_FAMILIES = ("linalg", "fft", "special")  # `torch.fft.fft` is `torch._C._fft.fft_fft`


def public(name: str) -> str:
    """A module's name as PyTorch has it."""
    return "torch" + name[9:] if name == "torchlike" or name.startswith("torchlike.") else name


@functools.lru_cache(1)
def _places(exchanges: int) -> dict[int, str]:
    """torch's names by the identity of our functions, as they were before they began to look at their arguments."""
    root = sys.modules["torchlike"]
    found: dict[int, str] = {}

    def add(f: Any, name: str) -> None:
        found.setdefault(id(plain_function(f)), name)

    for name in FUNCTIONS:
        place = IN_PYTHON.get(name)
        add(vars(root)[name], f"torch.{place}.{name}" if place else f"torch.{name}")
    spelled = {own: f"torch._C._nn.{name}" for name, own in NN.items()} | {name: f"torch.{name}" for name in _FROM_TORCH}
    for name, f in vars(root.nn.functional).items():
        if callable(f) and not name.startswith("_") and not inspect.isclass(f):
            add(f, spelled.get(name, f"torch.nn.functional.{name}"))
    for family in _FAMILIES:
        for name, f in vars(getattr(root, family)).items():
            if callable(f) and not name.startswith("_") and not inspect.isclass(f):
                add(f, f"torch._C._{family}.{family}_{name}")
    return found


def torch_name(f: Callable) -> str | None:
    """PyTorch's full name of one of our public functions or of a method of Tensor, None for others."""
    name = _places(exchanges[0]).get(id(plain_function(f)))
    if name is None and inspect.isfunction(f) and (f.__module__ or "").partition(".")[0] in ("torch", "torchlike"):
        if plain_function(getattr(Tensor, f.__name__, None)) is plain_function(f):
            name = f"torch.Tensor.{f.__name__}"
    return name


def call_form(f: Callable, args: tuple, kwargs: dict) -> tuple[str, Callable | str, tuple, dict]:
    """How torch records a call of f: the kind of node, its target and its arguments."""
    name = torch_name(f) or ""
    place, _, own = name.rpartition(".")
    if place == "torch.nn.functional" and own in _METHODS:
        return "call_method", own, args, kwargs
    if place not in ("torch.nn.functional", "torch.functional", "torch._lowrank", "torch._lobpcg"):
        return "call_function", f, args, kwargs
    if own == "einsum" and len(args) == 2 and isinstance(args[1], (list, tuple)):
        args = (args[0], *args[1])  # torch takes a list apart and calls itself
    if own in _UPSAMPLING:
        return call_form(sys.modules["torchlike"].nn.functional.interpolate, args, {**kwargs, **_UPSAMPLING[own]})
    try:
        bound = inspect.signature(f).bind(*args, **kwargs)
    except TypeError:
        return "call_function", f, args, kwargs  # it will fail there as it would here
    bound.apply_defaults()
    variant, (args, named) = _variant(f, own, bound.arguments), _split(bound, args)
    if own in _BY_NAME:
        named = {k: named.get(k) for k in _BY_NAME[own].split()}
    return "call_function", variant, args, named


def handed(api: Callable, args: tuple, kwargs: dict) -> tuple[Callable, tuple, dict]:
    """What a class that takes functions over is told of a call of a public function or method: as `call_form`, but what is called is no text."""
    if getattr(api, "__name__", "") in _METHODS_IN_PYTHON and getattr(Tensor, api.__name__, None) is api:
        try:
            bound = inspect.signature(api).bind(*args, **kwargs)
        except TypeError:
            return api, args, kwargs
        bound.apply_defaults()
        return (api, *_split(bound, args))
    _, target, args, kwargs = call_form(api, args, kwargs)
    return getattr(Tensor, target) if isinstance(target, str) else target, args, kwargs


def _split(bound: inspect.BoundArguments, given: tuple) -> tuple[tuple, dict]:
    """The arguments by position and by name; a function of any number of tensors passes on what it was given."""
    parameters = bound.signature.parameters.values()
    required = [p.name for p in parameters if p.default is p.empty and p.kind is not p.KEYWORD_ONLY]
    named = {name: x for name, x in bound.arguments.items() if name not in required}
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return given, {p.name: named[p.name] for p in parameters if p.kind is p.KEYWORD_ONLY}
    return tuple(bound.arguments[name] for name in required), named


def _variant(f: Callable, name: str, arguments: dict) -> Callable:
    """A pooling function that is asked for indices is another one to torch."""
    if arguments.get("return_indices") is True:
        return getattr(sys.modules["torchlike"].nn.functional, f"{name}_with_indices", f)
    return f
