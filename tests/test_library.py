"""torch.library: a program's own operations, beside real torch."""
import functools
import gc
import importlib
import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from same import error, same

_number = itertools.count()


def both(subject, oracle, facts):
    mine, real = facts(subject, importlib.import_module(f"{subject.__name__}.library")), facts(oracle, importlib.import_module("torch.library"))
    assert mine == real


def name():
    return f"mine{next(_number)}"


def test_custom_op(subject, oracle):
    """Values, gradients, names, tensors without data."""
    def facts(torch, library):
        space = name()

        def scaled(x: torch.Tensor, factor: float = 2.0) -> torch.Tensor:
            return torch.from_numpy(x.detach().numpy() * factor)
        op = library.custom_op(f"{space}::scaled", scaled, mutates_args=())
        op.register_fake(lambda x, factor=2.0: torch.empty_like(x))
        op.register_autograd(lambda ctx, g: (g * ctx.factor, None), setup_context=lambda ctx, inputs, output: setattr(ctx, "factor", inputs[1]))
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        y = op(x, 3.0)
        y.sum().backward()
        by_name = getattr(torch.ops, space).scaled(x, 3.0)
        return (y.tolist(), x.grad.tolist(), y.requires_grad, by_name.tolist(), getattr(torch.ops, space).scaled.default(x).tolist(), op(x, factor=4.0).requires_grad,
                op(torch.ones(2, device="meta")).shape == (2,), op(x.detach()).requires_grad)
    both(subject, oracle, facts)


def test_without_derivative(subject, oracle):
    def facts(torch, library):
        @library.custom_op(f"{name()}::negated", mutates_args=())
        def negated(x: torch.Tensor) -> torch.Tensor:
            return -x
        y = negated(torch.ones(2, requires_grad=True))
        with pytest.raises(RuntimeError, match="no autograd formula"):
            y.sum().backward()
        return y.tolist(), y.requires_grad
    both(subject, oracle, facts)


def test_libraries(subject, oracle):
    def facts(torch, library):
        space = name()
        lib = library.Library(space, "DEF")
        lib.define("twice(Tensor x) -> Tensor")
        lib.impl("twice", lambda x: x + x, "CPU")
        lib.define("thrice(Tensor x) -> Tensor")
        lib.impl("thrice", lambda x: 3 * x, "CompositeImplicitAutograd")
        x = torch.ones(2, requires_grad=True)
        getattr(torch.ops, space).thrice(x).sum().backward()
        refused = []
        for call in (lambda: getattr(torch.ops, space).nothing, lambda: library.Library(space, "XYZ"), lambda: library.custom_op("nameless", lambda x: x, mutates_args=())):
            try:
                call()
            except Exception as error:
                refused.append(type(error).__name__)
        return getattr(torch.ops, space).twice(torch.ones(2)).tolist(), x.grad.tolist(), refused
    both(subject, oracle, facts)


def test_a_namespace_without_operators(subject, oracle):
    """Every name is one, and those defined later are found in what was asked for before: programs ask `hasattr(torch.ops.pyg, "index_sort")`."""
    def facts(torch, library):
        space = name()
        early = getattr(torch.ops, space)
        absent = hasattr(early, "twice"), getattr(early, "twice", None), error(lambda: early.twice).partition(space)[2], repr(early).replace(space, "")
        lib = library.Library(space, "DEF")
        lib.define("twice(Tensor x) -> Tensor")
        lib.impl("twice", lambda x: x + x, "CPU")
        return absent, early is getattr(torch.ops, space), early.twice(torch.ones(2)).tolist(), hasattr(torch.ops.elsewhere, "twice")
    both(subject, oracle, facts)


def test_by_name(subject, oracle):
    def facts(torch, library):
        space = name()
        library.define(f"{space}::f", "(Tensor x) -> Tensor")
        library.impl(f"{space}::f", "cpu", lambda x: x * 5)
        library.register_fake(f"{space}::f", lambda x: torch.empty_like(x))
        library.register_autograd(f"{space}::f", lambda ctx, g: g * 5)
        x = torch.ones(2, requires_grad=True)
        getattr(torch.ops, space).f(x).sum().backward()
        return x.grad.tolist(), getattr(torch.ops, space).f(torch.ones(3, device="meta")).shape == (3,)
    both(subject, oracle, facts)


def test_written_arguments(subject, oracle):
    def facts(torch, library):
        @library.custom_op(f"{name()}::fill", mutates_args={"x"})
        def fill(x: torch.Tensor, value: float) -> None:
            x.copy_(torch.from_numpy(np.full(tuple(x.shape), value, np.float32)))
        x = torch.zeros(2)
        return fill(x, 3.0), x.tolist()
    both(subject, oracle, facts)


def test_schemas(subject, oracle):
    def facts(torch, library):
        def a(x: torch.Tensor, n: int, s: float = 1.5, *, flag: bool = False) -> torch.Tensor: ...
        def b(x: list[torch.Tensor], y: torch.Tensor | None = None) -> tuple[torch.Tensor, torch.Tensor]: ...
        def c(x: torch.Tensor) -> None: ...
        out = [library.infer_schema(f, mutates_args=m) for f, m in ((a, ()), (b, ()), (c, {"x"}))]
        for bad, m in ((lambda x: x, ()), (c, {"z"})):
            with pytest.raises(ValueError):
                library.infer_schema(bad, mutates_args=m)
        return out
    both(subject, oracle, facts)


def test_types_that_schemas_name(subject, oracle):
    """Functions of every annotation that there is a name for, and errors for the others."""
    def facts(torch, library):
        number, tensor = importlib.import_module(f"{torch.__name__}.types").Number, torch.Tensor

        def said(**annotations):
            scope: dict = {}
            exec(f"def f({', '.join(n for n in annotations if n != 'result')}): ...", scope)
            scope["f"].__annotations__ = {"return" if n == "result" else n: a for n, a in annotations.items() if a is not ...}
            try:
                return library.infer_schema(scope["f"], mutates_args=())
            except ValueError as e:
                return str(e)[:60]
        return (said(x=tensor, n=number, m=number | None, result=number), said(x=tensor | None, n=list[int], result=tuple[tensor, int]),
                said(x=tensor, result=None), said(x=tensor, result=list[tensor]), said(x=tensor, result=...), said(x=..., result=tensor),
                said(x=tensor, d=dict, result=tensor), said(x=tensor, result=str), said(x=tensor, n=int | float, result=tensor),
                said(x=tensor, result=tuple[tensor, ...]))
    both(subject, oracle, facts)


def test_arguments_by_schema(subject, oracle):
    """Names, defaults and numbers are what the schema says; what does not fit it is refused before the kernel runs."""
    def facts(torch, library):
        space, out = name(), []
        library.define(f"{space}::f", "(Tensor x, float s, int n=3, *, bool flag=False, int[] k=[1], float? y=None, Scalar z=1) -> Tensor")
        library.impl(f"{space}::f", "cpu", lambda x, s, n=9, *, flag=None, k=None, y=None, z=None: (out.append((s, n, flag, k, y, z)), x * s)[1])
        library.register_autograd(f"{space}::f", lambda ctx, g: (g * ctx.s, None, None), setup_context=lambda ctx, inputs, output, keyword_only_inputs: (
            setattr(ctx, "s", inputs[1]), out.append((*inputs[1:], keyword_only_inputs))))
        f, x, leaf = getattr(torch.ops, space).f, torch.ones(2), torch.ones(2, requires_grad=True)
        for args, kwargs in (
            ((x, 2), {}), ((), {"x": x, "s": 2.0, "n": 4}), ((x, True, torch.tensor(5)), {"flag": 1, "k": [2]}), ((leaf,), {"s": 2.0, "flag": True}), ((), {"x": leaf, "s": 3.0}),
            ((x,), {}), ((x, 2.0, 3, 4), {}), ((x, 2.0), {"q": 1}), ((x, 2.0), {"s": 1.0}), ((x, "a"), {}), (([1.0], 2.0), {}), ((x, 2.0, 3.5), {}), ((x, 2.0, None), {}),
            ((x, 2.0), {"k": 3}), ((x, 2.0), {"k": [1.5]}), ((x, 2.0), {"y": "a"}), ((x, 2.0), {"z": "a"}),
        ):
            try:
                y = f(*args, **kwargs)
                if y.requires_grad:
                    y.sum().backward()
                out.append(y.tolist())
            except Exception as error:
                out.append((type(error).__name__, str(error).split("\n")[0].replace(space, "space")))
        return out, leaf.grad.tolist()
    both(subject, oracle, facts)


@pytest.mark.parametrize("extra", [(), (None,), (1,), None])
def test_gradients_that_a_derivative_returns_too_many_or_too_few(subject, oracle, extra):
    def facts(torch, library):
        def product(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return x * y
        op = library.custom_op(f"{name()}::product", product, mutates_args=())
        op.register_autograd(lambda ctx, g: g if extra is None else (g, g, *(e and g for e in extra)))
        x = torch.ones(2, requires_grad=True)
        try:
            op(x, torch.ones(2, requires_grad=True)).sum().backward()
        except RuntimeError:
            return "refused"
        return x.grad.tolist()
    both(subject, oracle, facts)


@functools.cache
def _checked(torch):
    """One operation per mistake, with the arguments to check it with."""
    def define(name, fn, fake=None, backward=None, mutates_args=(), schema=None):
        op = torch.library.custom_op(f"checked::{name}", fn, mutates_args=mutates_args, schema=schema)
        if fake is not None:
            op.register_fake(fake)
        if backward is not None:
            op.register_autograd(backward)
        return op

    def counted(x):
        return x.new_empty(torch.library.get_ctx().new_dynamic_size(), x.dim(), dtype=torch.int64)

    def filled(x, out):
        out.copy_(x.sin())

    def added(x):
        x.add_(1)
        return x.clone()

    one, like, x = "(Tensor x) -> Tensor", lambda x: torch.empty_like(x), torch.arange(6.0).reshape(2, 3)
    leaf = x.clone().requires_grad_()
    return {
        "right": (define("right", lambda x: x * 2, like, lambda ctx, g: g * 2, schema=one), (leaf,)),
        "right without gradients": (define("plain", lambda x: x * 2, like, schema=one), (x,)),
        "no fake": (define("no_fake", lambda x: x * 2, schema=one), (x,)),
        "no derivative": (define("no_derivative", lambda x: x * 2, like, schema=one), (leaf,)),
        "a gradient of another shape": (define("gradient", lambda x: x * 2, like, lambda ctx, g: g.new_ones(7), schema=one), (leaf,)),
        "another shape": (define("shape", lambda x: x[:1].clone(), like, schema=one), (x,)),
        "another dtype": (define("dtype", lambda x: x.double(), like, schema=one), (x,)),
        "other strides": (define("strides", lambda x: x.t().clone().t(), like, schema=one), (x,)),
        "written": (define("written", added, like, schema=one), (x,)),
        "written and said so": (define("filled", filled, mutates_args={"out"}, schema="(Tensor x, Tensor(a1!) out) -> ()"), (x, torch.empty(2, 3))),
        "sizes that depend on data": (define("sizes", lambda x: x.nonzero().contiguous(), counted, schema=one), (x,)),
        "a wrong argument": (torch.ops.checked.right, (1,)),
    }


@pytest.mark.parametrize("name", ["right", "right without gradients", "no fake", "no derivative", "a gradient of another shape", "another shape", "another dtype",
                                  "other strides", "written", "written and said so", "sizes that depend on data", "a wrong argument"])
def test_opcheck(subject, oracle, name):
    found = []
    for torch in (subject, oracle):
        op, args = _checked(torch)[name]
        result = torch.library.opcheck(op, args, raise_exception=False)
        found.append({k: v if isinstance(v, str) else type(v).__name__ for k, v in result.items()})
        if any(v != "SUCCESS" for v in found[-1].values()):
            with pytest.raises(Exception, match=r"opcheck\(op, \.\.\.\): test_\w+ failed with") as error:
                torch.library.opcheck(op, args)
            assert error.type.__name__ == "OpCheckError"
    assert found[0] == found[1]


@pytest.mark.parametrize("call", [lambda library, op, x: library.opcheck(3, (x,)), lambda library, op, x: library.opcheck(op, (x,), test_utils="test_nothing"),
                                  lambda library, op, x: library.opcheck(op, (x,), rtol=1e-3), lambda library, op, x: library.opcheck(op, (x,), test_utils="test_schema")])
def test_opcheck_refuses_what_torch_refuses(subject, oracle, call):
    found = []
    for torch in (subject, oracle):
        checked = _checked(torch)
        try:
            found.append(call(torch.library, checked["right"][0], torch.ones(2)))
        except ValueError as error:
            found.append(str(error))
    assert found[0] == found[1]


def test_results_that_share_memory(subject, oracle):
    """A custom operator's result is no argument, and no view of one or of another result."""
    def facts(torch, library):
        def calls(kernel, schema, *args):
            op = library.custom_op(f"{name()}::aliasing", kernel, mutates_args=(), schema=schema)
            try:
                return str(op(*args))
            except RuntimeError as error:
                return str(error).partition("): ")[2]
        one, x, leaf = "(Tensor x) -> Tensor", torch.ones(3), torch.ones(3, requires_grad=True)
        other = torch.ones(3)
        return [calls(lambda x: x, one, x), calls(lambda x: x, one, leaf), calls(lambda x: x.view(-1), one, x), calls(lambda x: x.detach(), one, x),
                calls(lambda x: x[:1], one, x), calls(lambda x: [x[0].clone(), x[1]], "(Tensor[] x) -> Tensor[]", [x, other]),
                calls(lambda x: (other, other.view(-1)), "(Tensor x) -> (Tensor, Tensor)", x), calls(lambda x: other, one, x),
                calls(lambda x: (x * 2, x * 3), "(Tensor x) -> (Tensor, Tensor)", x), calls(lambda x: x.clone(), one, x)]
    both(subject, oracle, facts)


def _say(call):
    try:
        return call()
    except (RuntimeError, NotImplementedError, AttributeError, ValueError) as error:
        return type(error).__name__, str(error).partition("Got: ")[0].partition("\n")[0]


def test_gradients_beside_lists_of_numbers(subject, oracle):
    """A list of numbers has no gradient, or None for all of it, beside lists of tensors as well."""
    def facts(torch, library):
        def scaled(x: torch.Tensor, by: Sequence[int], others: Sequence[float]) -> torch.Tensor:
            return x * by[0] * by[1]
        op = library.custom_op(f"{name()}::scaled", scaled, mutates_args=())
        op.register_autograd(lambda ctx, g: (g * ctx.by[0] * ctx.by[1], None, None), setup_context=lambda ctx, inputs, output: setattr(ctx, "by", inputs[1]))

        def total(xs: list[torch.Tensor], by: Sequence[int]) -> torch.Tensor:
            return sum(x * n for x, n in zip(xs, by))
        both_lists = library.custom_op(f"{name()}::total", total, mutates_args=())
        both_lists.register_autograd(lambda ctx, g: ([g * n for n in ctx.by], None), setup_context=lambda ctx, inputs, output: setattr(ctx, "by", inputs[1]))
        x, grad = torch.ones(2, requires_grad=True), torch.autograd.grad
        return [grad(op(x, (2, 3), [0.5]).sum(), x)[0].tolist(), grad(op(x, [2, 3], []).sum(), x)[0].tolist(), grad(both_lists([x, x * 2], [4, 5]).sum(), x)[0].tolist()]
    both(subject, oracle, facts)


def test_gradients_of_lists_of_tensors(subject, oracle):
    """A list is an argument whose tensors have gradients of their own; needs_input_grad says which."""
    def facts(torch, library):
        seen = []

        def stacked(xs: list[torch.Tensor], scale: float, y: torch.Tensor | None = None) -> torch.Tensor:
            made = torch.stack(xs) * scale
            return made if y is None else made + y
        op = library.custom_op(f"{name()}::stacked", stacked, mutates_args=())
        lists = [True]

        def backward(ctx, g):
            seen.append(ctx.needs_input_grad)
            found = [x * ctx.scale for x in g.unbind(0)]
            return found if lists[0] else tuple(found), None, g.sum(0) if ctx.y else None

        def setup_context(ctx, inputs, output):
            ctx.scale, ctx.y = inputs[1], inputs[2] is not None
        op.register_autograd(backward, setup_context=setup_context)
        a, b, y, plain = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True), torch.ones(2)
        grad = torch.autograd.grad
        results = [[g.tolist() for g in grad(op([a, b, plain], 3.0, y).sum(), [a, b, y])], [g.tolist() for g in grad(op([plain], 3.0, y).sum(), [y])],
                   op([plain], 3.0, plain).requires_grad, _say(lambda: grad(op([a, b], 3.0).sum(), [a, b]))]
        return results, seen
    both(subject, oracle, facts)


def test_needs_input_grad_of_a_derivative(subject, oracle):
    def facts(torch, library):
        seen = []

        def product(x: torch.Tensor, y: torch.Tensor, scale: float) -> torch.Tensor:
            return x * y * scale
        op = library.custom_op(f"{name()}::product", product, mutates_args=())

        def backward(ctx, g):
            seen.append(ctx.needs_input_grad)
            return g, g, None
        op.register_autograd(backward)
        for needs in ((True, False), (False, True), (True, True)):
            op(*(torch.ones(2, requires_grad=n) for n in needs), 2.0).sum().backward()
        return seen
    both(subject, oracle, facts)


def test_versions_of_written_arguments(subject, oracle):
    def facts(torch, library):
        def write(x: torch.Tensor, y: torch.Tensor | None, zs: list[torch.Tensor]) -> None:
            array = x.numpy()
            np.sin(array, out=array)
        op = library.custom_op(f"{name()}::write", write, mutates_args={"x", "zs"})
        x, y, z = torch.ones(2), torch.ones(2), torch.ones(2)
        op(x, y, [z])
        return [round(v, 5) for v in x.tolist()], x._version > 0, y._version > 0, z._version > 0
    both(subject, oracle, facts)


def test_definitions_that_are_refused(subject, oracle):
    def facts(torch, library):
        def named(x: torch.Tensor, *, y: int, z: torch.Tensor | None) -> torch.Tensor:
            return x
        said = [_say(lambda: library.custom_op(f"{name()}::named", named, mutates_args=()))]
        for mutates in ((), ("x", "y"), ["y"]):
            said.append(_say(lambda m=mutates: library.custom_op(f"{name()}::sin_", lambda x: None, mutates_args=m, schema="(Tensor(a!) x) -> ()")))
        space = name()
        library.define(f"{space}::f", "(Tensor x, *, Tensor y) -> Tensor")
        said.append(_say(lambda: library.register_autograd(f"{space}::f", lambda ctx, g: g)))
        return said
    both(subject, oracle, facts)


def test_overloads(subject, oracle):
    def facts(torch, library):
        space = name()

        def one(x: torch.Tensor) -> torch.Tensor:
            return x.clone()

        def two(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return x + y
        library.custom_op(f"{space}::f", one, mutates_args=())
        library.custom_op(f"{space}::f.two", two, mutates_args=())
        f, x = getattr(torch.ops, space).f, torch.ones(2)
        return (f(x).tolist(), f(x, x).tolist(), f.two(x, x).tolist(), f.default(x).tolist(), f.overloads(), _say(lambda: f(x, x, x)),
                hasattr(f, "three"), str(f) == f"{space}.f")
    both(subject, oracle, facts)


def test_operations_of_a_scope(subject, oracle):
    def facts(torch, library):
        space, x = name(), torch.ones(2)
        library.define(f"{space}::kept", "(Tensor x) -> Tensor")
        found = []
        for factor in (2, 3):
            with library._scoped_library(space, "FRAGMENT") as lib:
                lib.define("scaled(Tensor x, *, float y=2.) -> Tensor")
                lib.impl("scaled", lambda x, *, y=2.0, factor=factor: x * y * factor, "CPU")
                lib.impl("kept", lambda x: x + 1, "CPU")
                found += [getattr(torch.ops, space).scaled(x).tolist(), getattr(torch.ops, space).scaled(x, y=3).tolist(), getattr(torch.ops, space).kept(x).tolist()]
            found += [hasattr(getattr(torch.ops, space), "scaled"), _say(lambda: getattr(torch.ops, space).kept(x))[0]]
        return found
    both(subject, oracle, facts)


def test_decorators_of_libraries(subject, oracle):
    """`impl(library, name, key)` and `define(library, schema)`; kernels without a derivative are differentiated through what they call."""
    def facts(torch, library):
        space, x = name(), torch.ones(2, requires_grad=True)
        lib = library.Library(space, "DEF")
        ops = getattr(torch.ops, space, None)
        lib.define("f(Tensor self) -> Tensor")

        @library.impl(lib, "f", "CPU")
        def kernel(x):
            return x * 3

        @library.impl(lib, f"{space}::f", "Meta")
        def fake(x):
            return x

        @library.define(lib, "g(Tensor x, int y) -> Tensor")
        def composed(x, y):
            return x * y
        library.define(f"{space}::h", "(Tensor x) -> Tensor", lib=lib)
        library.impl(f"{space}::h", "CPU", lambda x: x * 5, lib=lib)
        ops = getattr(torch.ops, space)
        found = []
        for y in (ops.f(x), ops.g(x, 4), ops.h(x), kernel(x), composed(x, 2)):
            x.grad = None
            y.sum().backward()
            found.append((y.tolist(), x.grad.tolist()))
        other = library.Library(space, "IMPL", "CPU")
        other.impl("f", lambda x: x * 6)
        return (found, ops.f(torch.ones(3, device="meta")).shape == (3,), ops.f(x).tolist(), repr(other).replace(space, ""),
                [_say(c)[0] for c in (lambda: library.Library(space, "DEF"), lambda: library.Library("prim", "DEF"), lambda: library.Library("aten", "DEF"),
                                      lambda: library.Library(space, "B"), lambda: other.define("z(Tensor x) -> Tensor"),
                                      lambda: other.impl("h", kernel, "CUDA"), lambda: lib.define("k(Tensor x) -> Tensor", "FOO"))],
                _say(lambda: library.impl(f"{space}::h", "CPU", kernel)))
    both(subject, oracle, facts)


def test_a_librarys_operations_end_with_it(subject, oracle):
    def facts(torch, library):
        space, found = name(), []
        kept = library.Library(space, "DEF")
        kept.define("f(Tensor x) -> Tensor")
        for factor in (2, 3):
            lib = library.Library(space, "FRAGMENT")
            lib.define("g(Tensor x) -> Tensor")
            lib.impl("g", lambda x, factor=factor: x * factor, "CPU")
            found.append(getattr(torch.ops, space).g(torch.ones(1)).tolist())
            del lib
            gc.collect()
        return found
    both(subject, oracle, facts)


def test_nodes_are_shown_by_the_operator():
    for name in ("torch", "torchlike"):
        torch, library = importlib.import_module(name), importlib.import_module(f"{name}.library")

        def doubled(x: torch.Tensor) -> torch.Tensor:
            return x * 2

        def set_up(ctx, inputs, output):
            ctx.shape = inputs[0].shape
        doubled.__annotations__ = {"x": torch.Tensor, "return": torch.Tensor}
        op = library.custom_op(f"shown_{name}::doubled", doubled, mutates_args=())
        op.register_autograd(lambda ctx, g: g * 2, setup_context=set_up)
        assert type(op(torch.ones(2, requires_grad=True)).grad_fn).__name__ == f"GeneratedBackwardFor_shown_{name}_doubled_defaultBackward"


@pytest.mark.parametrize("name", ["torch", "torchlike"])
def test_contexts_are_set_up_by_names(name):
    """`keyword_only_inputs` may stand before `output`."""
    torch, library = importlib.import_module(name), importlib.import_module(f"{name}.library")

    def scaled(x: torch.Tensor, *, k: float = 2.0) -> torch.Tensor:
        return x * k

    def set_up(ctx, inputs, keyword_only_inputs, output):
        ctx.k = keyword_only_inputs["k"]
    scaled.__annotations__ = {"x": torch.Tensor, "k": float, "return": torch.Tensor}
    op = library.custom_op(f"named_{name}::scaled", scaled, mutates_args=())
    op.register_autograd(lambda ctx, g: g * ctx.k, setup_context=set_up)
    x = torch.ones(2, requires_grad=True)
    op(x, k=3.0).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


@same
def test_operators_in_torch_ops(torch):
    """A packet with its overloads, each with tags and a schema; the same to fx and to classes that take functions over."""
    Tag, library, aten = torch.Tag, torch.library, torch.ops.aten

    @library.custom_op(f"{torch.__name__}_packets::f", mutates_args=["x"], tags=[Tag.needs_fixed_stride_order, Tag.core])
    def f(x: torch.Tensor, n: int = 2) -> torch.Tensor:
        return x.mul_(n) + 1
    lib = library.Library(f"{torch.__name__}_packets2", "DEF")
    lib.define("h(Tensor x, float[] s=[1.]) -> (Tensor, Tensor)", tags=Tag.pointwise)
    lib.define("h.two(Tensor x, *, Tensor? s=None) -> Tensor")
    lib.impl("h.two", lambda x, s=None: x * 3, "CompositeExplicitAutograd")
    ops, two = getattr(torch.ops, f"{torch.__name__}_packets"), getattr(torch.ops, f"{torch.__name__}_packets2")
    seen = []

    class Seeing(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})
    s = torch.ones(2).as_subclass(Seeing)
    kinds = [type(x) for x in (ops.f(s.clone()), ops.f.default(s.clone()), f(s.clone()), two.h.two(s))]
    traced = torch.fx.symbolic_trace(lambda x: ops.f(x) + ops.f.default(x, 3) + f(x, n=4) + two.h.two(x))
    found = [(n.name, str(n.target)) for n in traced.graph.nodes if n.op == "call_function"]

    def shown(schema):
        return (str(schema), schema.name, schema.overload_name, schema.is_mutable, [(a.name, a.kwarg_only, str(a.type), a.has_default_value(), a.default_value,
                None if a.alias_info is None else a.alias_info.is_write) for a in schema.arguments], [str(r.type) for r in schema.returns])
    made = [kinds == [Seeing] * 4, seen, found, traced(torch.ones(2)),
            [ops.f.overloads(), two.h.overloads(), str(ops.f), repr(ops.f.default), repr(f), ops.f is ops.f, f._opoverload is ops.f.default],
            [error(lambda: ops.g), error(lambda: two.h.three), error(lambda: two.h("a")), error(lambda: ops.f(torch.ones(2), 3, 4)),
             error(library.infer_schema, lambda x: x, mutates_args="x")],
            shown(ops.f.default._schema), shown(two.h.default._schema), shown(two.h.two._schema), f._schema,
            [str(t) for op in (ops.f.default, two.h.default, two.h.two) for t in op.tags],
            {str(op): [t.name for t in op.tags] for op in (aten.add.Tensor, aten.add_.Tensor, aten.rand.default, aten.nonzero.default, aten.mm.out,
                                                           aten.view.default, aten.squeeze_.dim, aten._local_scalar_dense.default, aten.batch_norm.default)}]
    del lib
    return ([repr(x).replace("torchlike", "torch") for x in made],
            [(name, int(t), repr(t), str(t)) for name, t in Tag.__members__.items()], Tag.core == 0, hash(Tag.core) == hash(torch._C.Tag.core))


@same
def test_libraries_that_are_not_there(torch):
    def words(f, *args):
        try:
            return f(*args)
        except Exception as caught:
            return type(caught).__name__, str(caught)
    classes = torch.classes
    return [words(classes.load_library, "/no/such.so"), words(torch.ops.load_library, "/no/such.so"), words(getattr, classes.mine, "Thing"),
            "/no/such.so" in classes.loaded_libraries | torch.ops.loaded_libraries, classes.__name__, classes.__file__]


@same
def test_autocast_rules(torch):
    """The arguments of an operation in autocast's blocks: which are cast, with which dtype, and that products in the kernel are not."""
    seen = []

    @torch.library.custom_op("autocast_rules::f", mutates_args=())
    def f(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor, xs: list[torch.Tensor]) -> torch.Tensor:
        seen.append([str(t.dtype).split(".")[1] for t in (x, y, z, *xs)])
        return x @ torch.ones(2, 2, dtype=x.dtype)

    f.register_autograd(lambda ctx, g: (g, None, None, [None, None]))
    arguments = torch.ones(2, 2), torch.ones(2, dtype=torch.float64), torch.ones(2, dtype=torch.int32), [torch.ones(1), torch.ones(1, dtype=torch.float16)]
    torch.library.register_autocast("autocast_rules::f", "cpu", torch.float16)
    f.register_autocast("cpu", torch.float64)
    found = []
    for dtype in (torch.bfloat16, torch.float16):
        with torch.autocast("cpu", dtype=dtype):
            found.append(f(*arguments))
            found.append((torch.ones(2, 2) @ torch.ones(2, 2)).dtype == dtype)
            with torch.autocast("cpu", enabled=False):
                found.append(torch.ops.autocast_rules.f(*arguments))
    x = torch.ones(2, 2, requires_grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        f(x, *arguments[1:]).sum().backward()
    return found, seen, x.grad, error(f.register_autocast, "nothing", torch.float16), error(f.register_autocast, 3, torch.float16)


@same
def test_autocast_rules_of_operators_by_schema(torch):
    library = torch.library.Library("autocast_rules_2", "FRAGMENT")
    library.define("g(Tensor x, float s) -> Tensor")
    library.impl("g", lambda x, s: x * s, "CompositeExplicitAutograd")
    torch.library.register_autocast("autocast_rules_2::g", "cpu", torch.bfloat16, lib=library)
    with torch.autocast("cpu", dtype=torch.float16):
        inside = torch.ops.autocast_rules_2.g(torch.ones(2), 3.0)
    return inside, torch.ops.autocast_rules_2.g(torch.ones(2), 3.0)
