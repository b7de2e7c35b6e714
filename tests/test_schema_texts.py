"""Schemas as programs write them for torch.library: what torch takes and how it prints it, and its errors."""
import gc

import pytest
from same import error, same

TAKEN = ("(Tensor x) -> (Tensor, Tensor)", "(Tensor x, int y = 2, *, float z = 1e-3)->Tensor", "(Tensor  x,int   y) ->   Tensor", "(Tensor(a!)[] x) -> Tensor(a!)",
         "(Tensor(a -> *) x) -> Tensor(a)[]", "(int[2] x=1, float y=1, bool b=True, str s = 'a', int[] z=[1,2]) -> ()",
         "(Tensor? x=None, Scalar q=1.5, SymInt[] n) -> Tensor a",
         "(Tensor x, *, *, int y) -> ()", "(Tensor x, *) -> (Tensor)", "(int x=-1, float f=0.1, float g=1e20) -> int?", "(Dict(str, Tensor) x, Tensor?[] y) -> Tensor[]",
         "(Tensor x, ...) -> ...", "(complex c, Generator? g=None, ScalarType? t=None) -> bool",
         "(Tensor A, Tensor! out) -> ()", "(Tensor(a!) x, Tensor!? y) -> Tensor(a!)", "(Tensor![] x) -> (Tensor!, Tensor(b! -> *))",
         "(int! x, str(a)? y, Tensor[]! z) -> int!")
REFUSED = ("(Tensor x) -> ", "(Tensor x) -> Foo", "(Foo x) -> Tensor", "(Tensor x", "(Tensor) -> Tensor", "(Tensor x,) -> Tensor", "(Tensor x) Tensor", "Tensor x -> Tensor",
           "", "()", "(Tensor x; int y) -> Tensor", "(Tensor x) -> Tensor)", "(Tensor x) -> Tensor, Tensor", "(float y=foo) -> ()", "(Tensor x=[]) -> ()",
           "(int[] x=1) -> ()", "(float y=-inf) -> ()",
           "(List[int] x) -> ()", "(int64_t[] x) -> ()", "(double? x) -> ()", "(Tensor 3) -> ()", "(Tensor?! x) -> ()")


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
def test_memory_without_a_name_is_written(torch):
    """`Tensor! out`, as bitsandbytes declares its operators."""
    library = torch.library.Library("schema_texts", "FRAGMENT")
    library.define("doubled(Tensor x, Tensor! out) -> ()")
    library.impl("doubled", lambda x, out: out.copy_(x * 2) and None, "CPU")
    schema = torch.ops.schema_texts.doubled.default._schema
    out = torch.zeros(1)
    before = out._version
    torch.ops.schema_texts.doubled(torch.ones(1), out)
    told = [(a.name, a.alias_info and (a.alias_info.is_write, len(a.alias_info.before_set), len(a.alias_info.after_set))) for a in schema.arguments]
    return schema.is_mutable, told, out, out._version - before


@same
def test_an_arrow_within_parentheses(torch):
    library = torch.library.Library("schema_texts", "FRAGMENT")
    library.define("arrows(Tensor(a -> *) x, Tensor(b! -> *) y, int n=3) -> (Tensor(a) u, Tensor(b! -> *) v)")
    schema = torch.ops.schema_texts.arrows.default._schema
    return [[(a.name, a.is_write, sorted(s.rpartition("::")[2] for s in {*a.alias_info.before_set, *a.alias_info.after_set}) if a.alias_info and a.is_write else None)
             for a in part] for part in (schema.arguments, schema.returns)]


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


DTYPES = """float32 float64 float16 bfloat16 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool complex32 complex64 complex128 float8_e4m3fn float8_e5m2 float8_e4m3fnuz
float8_e5m2fnuz float8_e8m0fnu float4_e2m1fn_x2 qint8 quint8 qint32 quint4x2 quint2x4 bits1x8 bits2x4 bits4x2 bits8 bits16 int1 int4 int7 uint1 uint4 uint7
short int long half float double chalf cfloat cdouble""".split()


@same
def test_defaults_that_are_names(torch):
    library, found = torch.library.Library("schema_texts", "FRAGMENT"), []
    for i, default in enumerate([*(f"ScalarType x={dtype}" for dtype in DTYPES), "ScalarType? x=half", "ScalarType[] x=[float32, long]", "Layout x=strided", "int x=Mean",
                                 "MemoryFormat x=contiguous_format", "int x=long", "int x=None", "float x=float", "Device x='cpu'", 'Device? x="cuda:1"', "Device? x=None"]):
        library.define(f"name{i}(Tensor t, {default}) -> Tensor")
        schema = getattr(torch.ops.schema_texts, f"name{i}").default._schema
        found.append((str(schema), str(schema.arguments[1].default_value)))
    refused = [error(library.define, f"refused(Tensor t, {default}) -> Tensor") for default in (
        "ScalarType x=torch.float32", "ScalarType x=char", "ScalarType x=Sum", "int x=float32", "Layout x=sparse_coo", "MemoryFormat x=channels_last", "int x=half", "Device x=cpu",
        "Device x=3", "Device x='there'")]
    return found, refused


@same
def test_defaults_of_functions_in_schemas(torch):  # torchao's operators have dtypes
    def defaults(x: torch.Tensor, dtype: torch.dtype = torch.float64, device: torch.device = torch.device("cpu"), scale: float = 1e-5, n: int = 3, mode: str = "a",
                 flag: bool = True) -> torch.Tensor:
        return x.to(dtype) * scale
    inferred = torch.library.infer_schema(defaults, mutates_args=())
    operator = torch.library.custom_op("schema_texts::defaults", defaults, mutates_args=())
    return inferred, str(torch.ops.schema_texts.defaults.default._schema), operator(torch.ones(2)), torch.ops.schema_texts.defaults(torch.ones(2), torch.float32)


@same
def test_a_kernel_for_all_kinds_of_device_of_what_was_defined_by_its_schema(torch):
    """As bitsandbytes registers its kernels: `default` is no kind of device for an operator of custom_op."""
    library = torch.library.Library("schema_texts", "FRAGMENT")
    torch.library.define("schema_texts::tripled", "(Tensor x) -> Tensor", lib=library)

    @torch.library.register_kernel("schema_texts::tripled", "default", lib=library)
    def tripled(x):
        return x * 3

    found = [torch.ops.schema_texts.tripled(torch.ones(1))]
    torch.library.register_kernel(torch.ops.schema_texts.tripled.default, "cpu", lambda x: x * 4, lib=library)
    found.append(torch.ops.schema_texts.tripled(torch.ones(1)))
    with pytest.raises(RuntimeError, match="Expected one of cpu, .* device type at start of device string: defaults"):
        torch.library.register_kernel("schema_texts::tripled", "defaults", tripled, lib=library)
    return found
