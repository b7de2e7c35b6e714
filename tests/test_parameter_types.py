"""Types of parameters: those of the stubs beside PyTorch's own stubs, each takes what it takes there; those that programs read as they run."""
import ast
import collections
import importlib
import inspect
import typing
from pathlib import Path

import pytest
import torch as real

import torchlike

OURS, THEIRS = Path(torchlike.__file__).parent, Path(real.__file__).parent
SIZES = "int | Sequence[int]"
# by another name, or through an alias: all numbers are one kind here
NAMES = {"_int": "int", "_bool": "bool", "bool": "bool", "_float": "float", "_complex": "float", "complex": "float", "Number": "float", "SymInt": "int", "IntLikeType": "int",
         "SymFloat": "float", "_size": "Sequence[int]", "_symsize": "Sequence[int]", "Size": "Sequence[int]", "_size_any_t": SIZES, "_size_1_t": SIZES, "_size_2_t": SIZES,
         "_size_3_t": SIZES, "_size_2_opt_t": SIZES, "_size_3_opt_t": SIZES, "_ratio_any_t": "float | Sequence[float]", "Tensors": "Sequence[Tensor]", "DType": "dtype",
         "DeviceLikeType": "device | str | int", "DeviceLike": "device | str | int", "Device": "device | str | int", "_Any": "Any"}
WIDER = {"bool": "int", "int": "float"}  # what takes its values as well
FILES = {"__init__.pyi": (("_C/_VariableFunctions.pyi", None), ("functional.py", None)), "_tensor.pyi": (("_C/__init__.pyi", "TensorBase"), ("_tensor.py", "Tensor")),
         "nn/functional.pyi": (("nn/functional.py", None), ("_C/_nn.pyi", None))}
OTHERS = {("multi_margin_loss", "p")}  # an integer to PyTorch's own function, which is written beside that of its stub


def kinds(node: ast.expr | None) -> set[str]:
    """The kinds that an annotation is a union of; `Sequence[...]` of each kind of element for every sequence."""
    match node:
        case None:
            return set()
        case ast.BinOp():
            return kinds(node.left) | kinds(node.right)
        case ast.Constant(value=None):
            return {"None"}
        case ast.Constant(value=str(text)):
            return kinds(ast.parse(text, mode="eval").body)
        case ast.Name(id=name) | ast.Attribute(attr=name):
            name = NAMES.get(name) or NAMES.get(name.lstrip("_")) or name.lstrip("_")
            return set(name.split(" | "))
        case ast.Subscript():
            (head,), inside = kinds(node.value), node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            if head == "Literal":
                return {type(x.value).__name__ for x in inside}
            within = set().union(*(kinds(x) for x in inside if not (isinstance(x, ast.Constant) and x.value is ...)))
            if head in ("Union", "Optional"):
                return within | ({"None"} if head == "Optional" else set())
            if head.startswith("BroadcastingList"):
                return within | {f"Sequence[{kind}]" for kind in within}
            return {f"Sequence[{kind}]" for kind in within} if head in ("List", "list", "Sequence", "Tuple", "tuple") else {head}
    return {ast.unparse(node)}


def parameters(file: Path, cls: str | None) -> dict[tuple[str, str], set[str]]:
    """By function and parameter, what it takes in any overload."""
    found = collections.defaultdict(set)
    body = ast.parse(file.read_text()).body
    for f in body if cls is None else next(x for x in body if isinstance(x, ast.ClassDef) and x.name == cls).body:
        if isinstance(f, ast.FunctionDef):
            for p in (*f.args.posonlyargs, *f.args.args, *f.args.kwonlyargs):
                found[f.name, p.arg] |= kinds(p.annotation)
    return found


def takes(ours: set[str], kind: str) -> bool:
    sequence = kind.startswith("Sequence[")
    element = kind[9:-1] if sequence else kind
    wider = WIDER.get(element)
    return "Any" in ours | {kind} or kind in ours or wider is not None and takes(ours, f"Sequence[{wider}]" if sequence else wider)


@pytest.mark.parametrize("file", FILES)
def test_parameters_take_what_pytorchs_stubs_say(file):
    ours = parameters(OURS / file, "Tensor" if file == "_tensor.pyi" else None)
    compared, untyped, refused = 0, [], []
    for theirs in FILES[file]:
        for (function, name), wanted in parameters(THEIRS / theirs[0], theirs[1]).items():
            if name not in ("self", "cls") and (function, name) in ours and wanted and not function.startswith("_"):
                have = ours[function, name]
                compared += 1
                if not have:
                    untyped.append((function, name, wanted))
                elif (function, name) not in OTHERS and (missing := {kind for kind in wanted if not takes(have, kind)}):
                    refused.append((function, name, missing))
    assert compared > 100
    assert untyped == []
    assert refused == []


def functions(module: str):
    """What both have there, with its methods: (name, real torch's, torchlike's)."""
    theirs, ours = importlib.import_module(f"torch.{module}"), importlib.import_module(f"torchlike.{module}")
    for name in sorted(n for n in dir(theirs) if not n.startswith("_") and hasattr(ours, n)):
        a, b = getattr(theirs, name), getattr(ours, name)
        if inspect.isclass(a):
            methods = [n for n in vars(a) if n == "__init__" or not n.startswith("_")]
            yield from ((f"{name}.{n}", getattr(a, n), getattr(b, n, None)) for n in methods)
        else:
            yield name, a, b


@pytest.mark.parametrize("module", ["nn", "nn.init", "nn.utils", "nn.utils.parametrize", "optim", "optim.lr_scheduler", "optim.swa_utils", "autograd", "utils.data",
                                    "distributions", "func", "amp", "cuda", "fx", "distributed"])
def test_annotations_are_there_when_a_program_asks(module):
    """jsonargparse, pydantic and their like read them with `typing.get_type_hints`."""
    asked, missing = 0, []
    for name, theirs, ours in functions(module):
        if not (inspect.isfunction(theirs) and inspect.isfunction(ours) and theirs.__module__.startswith("torch.")):
            continue
        try:
            wanted = typing.get_type_hints(theirs)
        except (NameError, TypeError):  # real torch's own are not to be had
            continue
        have = typing.get_type_hints(ours)
        taken = inspect.signature(ours).parameters
        asked += len(wanted)
        missing += [f"{name}({p})" for p in wanted if p in taken and p not in have and not p.startswith("_")]
    assert asked > 20
    assert missing == []
