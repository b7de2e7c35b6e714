"""The checks generated from one row of the case table.

A check runs a sample on one library and returns an observed outcome; `verify` runs it on real torch and on the library
under test and compares. Where real torch has no such variant (no `f_`, no `out=`), the check does not apply.
"""
import inspect
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from case import Case, Sample, call, function_of, in_double, inputs, lookup, seed_of, specs, t, tensor, with_dtype
from compare import RTOL, Difference, Raised, accidental, attempt, differences, is_tensor, leaf_name, raised

MODE_SAMPLES = 8  # at most so many of a row's samples are compiled together


def flat(tree: Any) -> list[Any]:
    """The tensors in anything an operation returns."""
    if is_tensor(tree):
        return [tree]
    if isinstance(tree, dict):
        tree = tuple(tree.values())
    return [x for item in tree for x in flat(item)] if isinstance(tree, (list, tuple)) else []


def cotangent(torch: Any, x: Any, *seed: Any) -> Any:
    return tensor(torch, t(*x.shape, dtype=leaf_name(x.dtype), low=-1, high=1), seed_of("cotangent", *seed))


# -------------------------------------------------------------------------------------- one sample, one library
def forward(torch: Any, row: Case, sample: Sample) -> Any:
    return call(torch, function_of(torch, row), sample, inputs(torch, row, sample))


def method(torch: Any, row: Case, sample: Sample) -> Any:
    """`x.f(...)` for a row that names `torch.f`."""
    def by_method(x: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(x, row.leaf)(*args, **kwargs)
    return call(torch, by_method, sample, inputs(torch, row, sample))


def inplace(torch: Any, row: Case, sample: Sample) -> Any:
    """`y.f_(...)` on a copy, on a view of a larger tensor, and the gradient through it."""
    def edit(y: Any, *args: Any, **kwargs: Any) -> Any:
        before = y._version
        result = getattr(y, row.leaf + "_")(*args, **kwargs)
        return {"value": y, "same object": result is y, "version moved": y._version > before}

    def edit_view(x: Any, *args: Any, **kwargs: Any) -> Any:
        base = torch.stack([x, x])
        getattr(base[1], row.leaf + "_")(*args, **kwargs)
        return base

    def edit_copy(x: Any, *args: Any, **kwargs: Any) -> Any:
        return edit(x.clone(), *args, **kwargs)

    seen = {"copy": attempt(call, torch, edit_copy, sample, inputs(torch, row, sample))}
    if not isinstance(seen["copy"], Raised):
        seen["view"] = attempt(call, torch, edit_view, sample, inputs(torch, row, sample))
        if row.grad and any(spec.differentiable for spec in specs(sample)):
            seen["grad"] = attempt(_gradients, torch, edit_copy, sample, inputs(torch, row, sample, True))
    return seen


def out(torch: Any, row: Case, sample: Sample) -> Any:
    """`out=` given right-sized tensors, and given empty ones that it must resize."""
    function = function_of(torch, row)
    results = call(torch, function, sample, inputs(torch, row, sample))
    seen = {}
    for label, make in (("sized", lambda r: torch.full_like(r, 1)), ("empty", lambda r: torch.empty(0, dtype=r.dtype))):
        target = make(results) if is_tensor(results) else tuple(make(r) for r in results)
        given = Sample(sample.args, {**sample.kwargs, "out": target})
        result = call(torch, function, given, inputs(torch, row, sample))
        same = [a is b for a, b in zip(flat(result), flat(target))]
        seen[label] = [list(flat(target)), same]
    return seen


def _gradients(torch: Any, function: Callable, sample: Sample, leaves: list[Any]) -> Any:
    return _gradients_of(torch, call(torch, function, sample, leaves), leaves)


def _gradients_of(torch: Any, results: Any, leaves: list[Any]) -> Any:
    results, asked = flat(results), [x for x in leaves if x.requires_grad]
    outputs = [r for r in results if r.requires_grad]
    if not outputs:
        return {"requires grad": [r.requires_grad for r in results]}
    weights = [cotangent(torch, r, i) for i, r in enumerate(outputs)]
    grads = torch.autograd.grad(outputs, asked, weights, allow_unused=True)
    return {"requires grad": [r.requires_grad for r in results], "grads": list(grads)}


def grad(torch: Any, row: Case, sample: Sample) -> Any:
    return _gradients(torch, function_of(torch, row), sample, inputs(torch, row, sample, True))


def gradgrad(torch: Any, row: Case, sample: Sample) -> Any:
    """The derivative of a random combination of the gradients, by inputs and cotangents, in double precision."""
    sample = in_double(sample)
    leaves = inputs(torch, row, sample, True)
    outputs = [r for r in flat(call(torch, function_of(torch, row), sample, leaves)) if r.requires_grad]
    asked = [x for x in leaves if x.requires_grad]
    weights = [cotangent(torch, r, i).requires_grad_() for i, r in enumerate(outputs)]
    first = torch.autograd.grad(outputs, asked, weights, create_graph=True, allow_unused=True)
    second = [(g, cotangent(torch, g, "second", i)) for i, g in enumerate(first) if g is not None and g.requires_grad]
    return torch.autograd.grad([g for g, _ in second], asked + weights, [w for _, w in second], allow_unused=True)


def keywords(torch: Any, row: Case, sample: Sample, names: list[str]) -> Any:
    """The same call with every argument by keyword."""
    named = Sample((), {**dict(zip(names, sample.args)), **sample.kwargs})
    return call(torch, function_of(torch, row), named, inputs(torch, row, sample))


def vmap(torch: Any, row: Case, sample: Sample, loop: bool = False) -> Any:
    """The row under `func.vmap` over a new leading dimension; `loop`: what that must equal."""
    batches = [[tensor(torch, spec, seed_of(row.id, b, i)) for i, spec in enumerate(specs(sample))] for b in range(2)]
    function = function_of(torch, row)

    def on_tensors(*tensors: Any) -> tuple:
        return tuple(flat(call(torch, function, sample, list(tensors))))
    if loop:
        return [torch.stack(parts) for parts in zip(*[on_tensors(*batch) for batch in batches])]
    return list(torch.func.vmap(on_tensors)(*[torch.stack(parts) for parts in zip(*batches)]))


def whole(torch: Any, row: Case) -> Any:
    """The samples' results and gradients, nothing observed before the end: one recorded program."""
    seen = []
    for sample in row.samples[::1 + len(row.samples) // MODE_SAMPLES]:
        try:  # the results of the call that is differentiated: calling once more would compile everything twice
            leaves = inputs(torch, row, sample, row.grad)
            seen.append(call(torch, function_of(torch, row), sample, leaves))
            if any(x.requires_grad for x in leaves):
                seen.append(_gradients_of(torch, seen[-1], leaves))
        except Exception as error:  # compared as an outcome
            seen.append(raised(error))
    return seen


# ---------------------------------------------------------------------------------------- two libraries compared
def outcome(torch: Any, check: Callable, *args: Any, **kwargs: Any) -> Any:
    """The observed result of a check, always from the same random state."""
    torch.manual_seed(1234)
    return attempt(check, torch, *args, **kwargs)


def _applies(oracle: Any, check: Callable, row: Case, sample: Sample, want: Any) -> bool:
    """Whether real torch has the variant, and answers with more than an accident of its build."""
    if accidental(want):
        return False
    if check in (method, inplace):
        name = row.leaf + ("_" if check is inplace else "")
        is_function_of_tensor = row.name.startswith(("torch.", "Tensor.")) and row.name.count(".") == 1
        if not is_function_of_tensor or not callable(getattr(oracle.Tensor, name, None)):
            return False
        if not sample.args or not hasattr(sample.args[0], "dtype"):
            return False
        first = want["copy"] if check is inplace else want
        return not (isinstance(first, Raised) and first.kind == "TypeError")
    # A gradient that torch refuses is refused for what its formulas lack; a right gradient is no mistake there.
    return check is forward or not isinstance(want, Raised)


def argument_names(oracle: Any, row: Case) -> list[list[str]]:
    """The names under which real torch may take the row's arguments: from signatures, schemas, and NumPy's words."""
    if row.fn is not None or row.name.startswith("Tensor."):
        return []
    try:
        lists = [list(inspect.signature(lookup(oracle, row.name)).parameters)]
    except ValueError:  # built in: the schemas of its overloads
        schemas = oracle._C._jit_get_schemas_for_operator("aten::" + row.name.removeprefix("torch.").replace(".", "_"))
        schemas = schemas or oracle._C._jit_get_schemas_for_operator("aten::" + row.leaf)
        lists = [["input" if a.name == "self" else a.name for a in schema.arguments] for schema in schemas]
        lists = [names for names in lists if names[:1] != ["a"]]  # overloads for Python numbers, of TorchScript only
    numpy_words = {"dim": "axis", "keepdim": "keepdims"}
    return lists + [[numpy_words.get(name, name) for name in names] for names in lists if "dim" in names]


def keyword_differences(oracle: Any, subject: Any, row: Case, number: int, sample: Sample) -> list[Difference]:
    found, tried = [], []
    for names in argument_names(oracle, row):
        names = names[:len(sample.args)]
        if len(names) < len(sample.args) or names in tried or set(names) & set(sample.kwargs):
            continue
        tried.append(names)
        want = outcome(oracle, keywords, row, sample, names)
        if not isinstance(want, Raised):
            found += _compared(row, f"sample {number} keywords {names}", want, outcome(subject, keywords, row, sample,
                names))
    return found


def sample_checks(row: Case, sample: Sample) -> list[Callable]:
    differentiable = row.grad and any(spec.differentiable for spec in specs(sample))
    chosen = [(forward, True), (method, row.method and row.name.startswith("torch.") and row.fn is None), (inplace,
        row.inplace and row.fn is None), (out, row.out and row.fn is None and not row.name.startswith("Tensor.")),
        (grad, differentiable), (gradgrad, differentiable and row.gradgrad)]
    return [check for check, wanted in chosen if wanted]


def verify(oracle: Any, subject: Any, row: Case) -> list[Difference]:
    """Every check of a row but the dtype sweep, in the subject's ordinary mode."""
    found: list[Difference] = []
    for number, sample in enumerate(row.samples):
        for check in sample_checks(row, sample):
            want = outcome(oracle, check, row, sample)
            if _applies(oracle, check, row, sample, want):
                got = outcome(subject, check, row, sample)
                if check is inplace and isinstance(want.get("grad"), Raised) and isinstance(got, dict):
                    want["grad"] = got["grad"] = None
                where = f"sample {number} {check.__name__}"
                if check in (forward, method, out):
                    found += _compared(row, where, want, got)
                else:  # a gradient's strides are nobody's business, and it passes through the dtypes of all inputs
                    found += _compared(row, where, want, got, none_is_zero=check is gradgrad, strides=None,
                                       floor=coarsest(in_double(sample) if check is gradgrad else sample))
        if sample.args:
            found += keyword_differences(oracle, subject, row, number, sample)
        if row.vmap and next(specs(sample), None) is not None:
            want, theirs = outcome(oracle, vmap, row, sample, loop=True), outcome(oracle, vmap, row, sample)
            if not isinstance(want, Raised) and not vmap_differences(row, want, theirs, ""):
                found += vmap_differences(row, want, outcome(subject, vmap, row, sample), f"sample {number} vmap")
    return found


def verify_errors(oracle: Any, subject: Any, row: Case) -> tuple[list[Difference], list[tuple[str, str]]]:
    """The bad calls of a row: differences of class, and (torch's message, the subject's) where the words differ."""
    found, words = [], []
    for number, sample in enumerate(row.errors):
        want, got = outcome(oracle, forward, row, sample), outcome(subject, forward, row, sample)
        if not isinstance(want, Raised):
            found.append(Difference("case", f"error sample {number} of {row.id} does not fail in torch"))
            continue
        found += _compared(row, f"error {number}", want, got)
        if isinstance(got, Raised) and got.message != want.message:
            words.append((want.message, got.message))
    return found, words


def verify_dtypes(oracle: Any, subject: Any, row: Case) -> list[Difference]:
    """The first sample in every dtype of the row: torch's result, result dtype and gradient, or torch's error class."""
    found: list[Difference] = []
    for dtype in row.dtypes:
        sample = with_dtype(row.samples[0], dtype)
        want = outcome(oracle, forward, row, sample)
        if accidental(want):
            continue
        found += _compared(row, f"dtype {dtype}", want, outcome(subject, forward, row, sample))
        if row.grad and not isinstance(want, Raised) and any(spec.differentiable for spec in specs(sample)):
            want = outcome(oracle, grad, row, sample)
            if not isinstance(want, Raised):
                found += _compared(replace(row, tol=3 * row.tol), f"dtype {dtype} gradient", want,
                                   outcome(subject, grad, row, sample), strides=None)
    return found


def verify_mode(subject: Any, row: Case, contexts: list[Callable]) -> list[Difference]:
    """All contexts (ways of execution) must agree with the first one."""
    want, found = None, []
    for index, context in enumerate(contexts):
        with context():
            got = outcome(subject, whole, row)
        if index == 0:
            want = got
        else:
            found += _compared(row, getattr(context, "__name__", str(index)), want, got)
    return found


def vmap_differences(row: Case, want: Any, got: Any, where: str) -> list[Difference]:
    """vmap against a loop; strides are the business of neither. Where torch's own vmap fails this, nothing is asked."""
    return differences(want, got, strides=None, values=row.values, tol=row.tol, where=where)


def _compared(row: Case, where: str, want: Any, got: Any, **more: Any) -> list[Difference]:
    return differences(want, got, **{"strides": row.strides, "values": row.values, "tol": row.tol, "where": where, **more})


def coarsest(sample: Sample) -> float:
    """The relative tolerance of the coarsest floating dtype among a sample's tensors."""
    return max((RTOL.get(spec.dtype, 0.0) for spec in specs(sample)), default=0.0)


def execution_modes(subject: Any) -> list[Callable]:
    """The library's ways of running a program, as context managers; real torch has one."""
    if not hasattr(subject, "immediate"):
        return [nullcontext, nullcontext]
    from torchlike._core import program

    def numpy_tier() -> Any:
        return program.tier("numpy")

    def compiled_tier() -> Any:
        return program.tier("compiled")

    def immediate() -> Any:
        return subject.immediate()

    return [numpy_tier, compiled_tier, immediate]
