"""Schemas as programs write them for torch.library: what torch takes and how it prints it, and its errors."""
import gc

import pytest
from same import same

TAKEN = ("(Tensor x) -> (Tensor, Tensor)", "(Tensor x, int y = 2, *, float z = 1e-3)->Tensor", "(Tensor  x,int   y) ->   Tensor", "(Tensor(a!)[] x) -> Tensor(a!)",
         "(Tensor(a -> *) x) -> Tensor(a)[]", "(int[2] x=1, float y=1, bool b=True, str s = 'a', int[] z=[1,2]) -> ()",
         "(Tensor? x=None, Scalar q=1.5, SymInt[] n) -> Tensor a",
         "(Tensor x, *, *, int y) -> ()", "(Tensor x, *) -> (Tensor)", "(int x=-1, float f=0.1, float g=1e20) -> int?", "(Dict(str, Tensor) x, Tensor?[] y) -> Tensor[]",
         "(Tensor x, ...) -> ...", "(complex c, Generator? g=None, ScalarType? t=None) -> bool")
REFUSED = ("(Tensor x) -> ", "(Tensor x) -> Foo", "(Foo x) -> Tensor", "(Tensor x", "(Tensor) -> Tensor", "(Tensor x,) -> Tensor", "(Tensor x) Tensor", "Tensor x -> Tensor",
           "", "()", "(Tensor x; int y) -> Tensor", "(Tensor x) -> Tensor)", "(Tensor x) -> Tensor, Tensor", "(float y=foo) -> ()", "(Tensor x=[]) -> ()",
           "(int[] x=1) -> ()", "(float y=-inf) -> ()",
           "(List[int] x) -> ()", "(int64_t[] x) -> ()", "(double? x) -> ()", "(Tensor 3) -> ()")


@pytest.mark.parametrize("schema", TAKEN)
@same
def test_schemas_that_are_taken(torch, schema):
    library = torch.library.Library("schema_texts", "FRAGMENT")
    name = library.define("f" + schema)
    return name, str(torch.ops.schema_texts.f.default._schema)


@pytest.mark.parametrize("schema", REFUSED)
def test_schemas_that_are_refused(subject, oracle, schema):
    words = []
    for torch in (subject, oracle):
        library = torch.library.Library("schema_texts", "FRAGMENT")
        with pytest.raises(RuntimeError) as refused:
            library.define("f" + schema)
        words.append(str(refused.value))
    assert words[0] == words[1]


def _refusals(torch):
    library, found = torch.library.Library("schema_texts", "FRAGMENT"), []
    define, tensor = torch.library.define, "(Tensor x) -> Tensor"
    for call in (lambda: define("f", tensor, lib=library), lambda: define("a::b::c", tensor), lambda: define("schema_texts::f", "(Tensor x)->Tensor", lib=library),
                 lambda: define("schema_texts::f", "Tensor x -> Tensor", lib=library), lambda: torch.library.impl("f", "CPU", abs),
                 lambda: torch.library.register_fake("f", abs), lambda: torch.library.register_autograd("f", abs)):
        with pytest.raises(ValueError, match="expected|Expected") as refused:
            call()
        found.append(str(refused.value))
    with pytest.raises(RuntimeError, match="does not match namespace of enclosing TORCH_LIBRARY_FRAGMENT block"):
        library.define("another::f" + tensor)
    library.define("f" + tensor)
    with pytest.raises(RuntimeError, match="device type at start of device string: no_device"):
        torch.library.register_kernel("schema_texts::f", "no_device", abs)
    return found


def test_names_and_forms_that_are_refused(subject, oracle):
    assert _refusals(subject) == _refusals(oracle)


@same
def test_defaults_after_spaces(torch):
    library = torch.library.Library("schema_texts", "FRAGMENT")
    library.define("g(Tensor w, int x = 2, *, int y = 3, int z) -> Tensor")
    library.impl("g", lambda w, x=2, *, y=3, z: w * x * y * z, "CPU")
    seen = []

    def set_up(ctx, inputs, keyword_only_inputs, output):
        seen.append((inputs[1:], keyword_only_inputs))
        ctx.factor = inputs[1] * keyword_only_inputs["y"] * keyword_only_inputs["z"]
    torch.library.register_autograd("schema_texts::g", lambda ctx, grad: (grad * ctx.factor, None), setup_context=set_up, lib=library)
    w = torch.ones(2, requires_grad=True)
    g = torch.ops.schema_texts.g
    (g(w, z=42) + g(w, x=4, z=1) + g(w, 5, y=1, z=2)).sum().backward()
    return w.grad, seen


@same
def test_libraries_that_are_ended(torch):
    library = torch.library.Library("schema_texts", "FRAGMENT")
    library.define("h(Tensor x) -> Tensor")
    before = hasattr(torch.ops.schema_texts, "h")
    del library.m
    del library
    gc.collect()
    return before, torch.library.Library("schema_texts", "FRAGMENT").define("h(Tensor x) -> Tensor")


def test_names_with_the_namespace(subject):
    """Of PyTorch, too, whose libraries of such operators cannot be ended."""
    library = subject.library.Library("schema_texts", "FRAGMENT")
    assert library.define("schema_texts::i(Tensor x) -> Tensor") == "schema_texts::i" and subject.ops.schema_texts.i.default._schema.name == "schema_texts::i"


@same
def test_impl_abstract_by_name(torch):
    library = torch.library.Library("schema_texts", "FRAGMENT")
    library.define("k(Tensor x) -> Tensor")
    torch.library.impl_abstract("schema_texts::k", func=lambda x: x.new_empty(3), lib=library)
    return torch.ops.schema_texts.k(torch.ones(2, device="meta")).shape
