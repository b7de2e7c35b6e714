"""How precisely products of float32 are computed, by library and operation: `fp32_precision`, and the older settings of TF32, which write the same.

An operation goes by its own setting, else by that of its library, else by the one for all. What they say of a GPU is obeyed (see
`_core/precision.py`); a CPU computes in all of float32 whatever they say.
"""

from typing import Any

from .._core.program import permit_tf32

_LEGAL = {"generic": ("none", "ieee", "tf32", "bf16"), "mkldnn": ("none", "ieee", "tf32", "bf16"), "cuda": ("none", "ieee", "tf32")}
_UNSET = "unset"  # as 'none', but TF32 where nothing else is said
_OPERATIONS = ("matmul", "conv", "rnn")

_own = {(library, operation): "none" for library in _LEGAL for operation in ("all", *_OPERATIONS)}
_own["cuda", "conv"] = _own["cuda", "rnn"] = _UNSET
_matmul_word = "highest"  # what set_float32_matmul_precision or allow_tf32 said last
_cudnn_allowed = True  # the same of cudnn.allow_tf32


def get(library: str, operation: str = "all") -> str:
    """'ieee', 'tf32', 'bf16', or 'none' where nothing is said that this library has."""
    own = _own[library, operation]
    if own not in ("none", _UNSET):
        return own
    for said in (_own[library, "all"], _own["generic", "all"]):
        if said != "none":
            return said if said in _LEGAL[library] else "none"
    return "tf32" if own == _UNSET else "none"


def put(library: str, operation: str, precision: str) -> None:
    if not isinstance(precision, str):
        raise TypeError(f"fp32_precision expects a str, but got {type(precision).__name__}")
    if precision not in _LEGAL["generic"]:
        raise RuntimeError(f"Unknown precision: {precision}")
    if precision not in _LEGAL[library]:
        raise RuntimeError(f"backend '{library}' does not support precision '{precision}'")
    _own[library, operation] = precision
    for each in _OPERATIONS:
        permit_tf32(each, get("cuda", each) == "tf32")


class Operation:
    """An operation of a library, whose one attribute is its `fp32_precision`."""

    def __init__(self, library: str, operation: str) -> None:
        self.__dict__.update(_at=(library, operation))

    def __getattr__(self, name: str) -> Any:
        if name == "fp32_precision":
            return get(*self._at)
        raise AttributeError(f"Unknown attribute {name}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "fp32_precision":
            raise AttributeError(f"Unknown attribute {name}")
        put(*self._at, value)


# -- the older settings ------------------------------------------------------------------------------------------------------


def _mixed(name: str) -> RuntimeError:
    return RuntimeError(f"{name} says something else than fp32_precision, which was set as well: please use the latter alone")


def matmul_allows_tf32() -> bool:
    """Raises RuntimeError where `fp32_precision` says otherwise, as the others here do."""
    allowed = get("cuda", "matmul") == "tf32"
    if allowed != (_matmul_word != "highest"):
        raise _mixed("allow_tf32 of cuBLAS")
    return allowed


def allow_tf32_in_matmul(on: bool) -> None:
    global _matmul_word
    _matmul_word = "high" if on else "highest"
    put("cuda", "matmul", "tf32" if on else "ieee")


def matmul_precision() -> str:
    """'highest', 'high' or 'medium'."""
    word, ours = _matmul_word, get("mkldnn", "matmul")
    if (get("cuda", "matmul") == "tf32" and word == "highest") or (ours == "bf16" and word != "medium") or (ours == "tf32" and word != "high"):
        raise _mixed("the float32 matmul precision")
    return word


def set_matmul_precision(word: str) -> None:
    global _matmul_word
    _matmul_word = word
    put("cuda", "matmul", "ieee" if word == "highest" else "tf32")
    put("mkldnn", "matmul", {"highest": "ieee", "high": "tf32", "medium": "bf16"}[word])


def cudnn_allows_tf32() -> bool:
    allowed = {get("cuda", operation) == "tf32" for operation in ("conv", "rnn")}
    if allowed != {_cudnn_allowed}:
        raise _mixed("allow_tf32 of cuDNN")
    return _cudnn_allowed


def allow_tf32_in_cudnn(on: bool) -> None:
    global _cudnn_allowed
    _cudnn_allowed = on
    for operation in ("conv", "rnn"):
        put("cuda", operation, "tf32" if on else "none")
