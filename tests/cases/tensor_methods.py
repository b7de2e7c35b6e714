"""Members of Tensor that are not functions of torch (casts, facts, edits, conversion to Python), and settings."""
import numpy as np
from case import ALL_DTYPES, Case, Name, bools, case, cplx, ints, lit, pos, s, t

FLIPPED = t(3, 4, layout="transposed")


def fact(name: str, *samples, **flags) -> Case:
    return case(name, *(samples or (s(t(2, 3)), s(ints(3)), s(t()), s(FLIPPED), s(t(0, 2)), s(cplx(2)))),
        **{"grad": False, "vmap": False, "dtypes": ALL_DTYPES if not samples else (), **flags})


def edit(name: str, *samples, **flags) -> Case:
    """An in-place method on a copy: the object returned is the one edited."""
    leaf = name.rsplit(".", 1)[1]

    def run(torch, x, *args, **kwargs):
        y = x.clone()
        result = getattr(y, leaf)(*args, **kwargs)
        return [y, result is y]
    return case(name, *samples, fn=run, **{"vmap": False, "gradgrad": False, **flags})


def setting(name: str, *samples, read, restore) -> Case:
    """Set something for the whole process, read it back, and restore it whatever happened."""
    leaf = name.rsplit(".", 1)[1]

    def run(torch, *args):
        try:
            getattr(torch, leaf)(*args)
            return read(torch)
        finally:
            getattr(torch, leaf)(restore(torch))
    return case(name, *samples, fn=run, grad=False, vmap=False)


CASTS = ("float", "double", "half", "bfloat16", "int", "long", "short", "char", "byte", "bool", "cfloat", "cdouble")
FACTS = ("shape", "dtype", "ndim", "device", "layout", "is_cuda", "is_leaf", "requires_grad", "grad", "grad_fn",
    "is_sparse", "is_quantized", "is_meta", "itemsize", "nbytes", "names", "is_mps", "_version", "output_nr",
    "volatile")
FACT_METHODS = ("size", "dim", "numel", "nelement", "ndimension", "stride", "is_contiguous", "is_floating_point",
    "is_complex", "is_signed", "element_size", "storage_offset", "get_device", "is_conj", "is_neg", "is_inference",
    "is_pinned", "is_shared", "tolist")

CASES = [
    *[case(f"Tensor.{n}", s(t(2, 3)), s(ints(3)), s(bools(3)), s(lit([1.7, -1.7, 0.0])), s(FLIPPED),
         dtypes=ALL_DTYPES) for n in CASTS],
    case("Tensor.to", *[s(t(3), Name(d)) for d in ALL_DTYPES], s(t(3), "cpu"), s(ints(3), t(2)),
         s(t(3), dtype=Name("float64")), s(t(3), "cpu", Name("int32")), s(t(3), device="cpu"),
         s(t(3), Name("float32"), copy=True), s(t(3), "cpu", non_blocking=True), s(t(3)),
         s(t(2, 3, 2, 2), memory_format=Name("channels_last")), errors=(s(t(3), "nowhere"), s(t(3), "float32")),
         vmap=False, dtypes=ALL_DTYPES),
    case("Tensor.type", s(t(3)), s(t(3), Name("float64")), s(t(3), "torch.DoubleTensor"), s(t(3), "torch.LongTensor"),
         s(ints(3), Name("float32")), errors=(s(t(3), "torch.NoTensor"),), vmap=False),
    case("Tensor.type_as", s(t(3), ints(2)), s(ints(3), t(2, dtype="float64"))),
    case("Tensor.cpu", s(t(2))),
    case("Tensor.numpy", s(t(2, 3)), s(ints(3)), s(FLIPPED), grad=False, vmap=False),
    case("Tensor.numpy", s(t(2)),
         fn=lambda torch, x: x.numpy() if not x.requires_grad else x.detach().requires_grad_().numpy(), errors=(),
         tag="grad", vmap=False, gradgrad=False, grad=False),
    case("Tensor.item", s(lit(1.5)), s(lit([[3]], "int64")), s(lit(True, "bool")), s(lit(1 + 2j, "complex64")),
         errors=(s(t(2)), s(t(0))), grad=False, vmap=False),
    *[fact(f"Tensor.{n}") for n in FACTS if n not in ("device", "volatile", "names")],
    *[fact(f"Tensor.{n}", dtypes=() if n == "tolist" else ALL_DTYPES) for n in FACT_METHODS],
    fact("Tensor.device", s(t(2)), fn=lambda torch, x: [str(x.device), x.device.type, x.device.index]),
    fact("Tensor.size", s(t(2, 3), 0), s(t(2, 3), -1), tag="dim", errors=(s(t(2), 1), s(t(), 0))),
    fact("Tensor.stride", s(FLIPPED, 0), s(t(2, 3), -1), tag="dim", errors=(s(t(2), 1),)),
    fact("Tensor.is_contiguous", s(t(2, 3, 2, 2, layout="channels_last"), memory_format=Name("channels_last")),
         s(FLIPPED), tag="format"),
    fact("Tensor.dim_order"),
    fact("Tensor.__repr__", s(t(2, 3)), s(ints(3)), s(t()), s(bools(2)), s(t(0)), s(lit([1e10, 1.0])),
         s(lit([float("nan"), float("inf")])), s(cplx(2)), s(t(2, dtype="float64")), s(t(3, 40)), s(t(2, 2, 2))),
    fact("Tensor.__format__", s(lit(1.2345), ".2f"), s(lit(3, "int64"), "d"), s(t(2), ""),
         fn=lambda torch, x, f: format(x, f), errors=(s(t(2), ".2f"),)),
    fact("Tensor.__hash__", s(t(2)), fn=lambda torch, x: hash(x) == hash(x)),
    fact("Tensor.__array__", s(t(2, 3)), s(ints(2)), fn=lambda torch, x: __import__("numpy").asarray(x)),
    fact("Tensor.is_set_to", s(t(2)), fn=lambda torch, x: [x.is_set_to(x), x.is_set_to(x.clone())]),
    fact("Tensor.data_ptr", s(t(4)), fn=lambda torch, x: [x.data_ptr() == x.view(2, 2).data_ptr(),
         x[1:].data_ptr() - x.data_ptr(), x.data_ptr() == x.clone().data_ptr()]),
    edit("Tensor.zero_", s(t(2, 3)), s(ints(3))),
    edit("Tensor.fill_", s(t(2, 3), 5), s(t(3), t()), s(ints(3), 2.7), s(bools(2), 3),
         errors=(s(t(3), t(2)), s(t(3), "a"))),
    edit("Tensor.copy_", s(t(2, 3), t(2, 3)), s(t(2, 3), t(3)), s(t(2), ints(2)), s(ints(2), t(2)), s(t(2, 3), t()),
         s(t(2), np.int64(2)), errors=(s(t(2), t(3)), s(t(2), "a"))),
    edit("Tensor.add_", s(t(3), t(3)), s(t(3), 2), s(t(3), t(3), alpha=2), s(t(2, 3), t(3)), s(ints(3), 2),
         errors=(s(t(3), t(2, 3)), s(ints(3), 1.5), s(ints(3), t(3)), s(bools(3), 1), s(t(3), 1j))),
    edit("Tensor.mul_", s(t(3), t(3)), s(t(3), 2), errors=(s(ints(3), 1.5),)),
    edit("Tensor.div_", s(t(3), pos(3)), s(t(3), 2), errors=(s(ints(3), 2),)),
    edit("Tensor.sub_", s(t(3), t(3), alpha=2)),
    edit("Tensor.pow_", s(pos(3), 2)),
    *[edit(f"Tensor.{n}_", s(t(3), t(3)), s(ints(3), 2), grad=False) for n in ("eq", "ne", "lt", "le", "gt", "ge")],
    edit("Tensor.index_add_", s(t(3, 2), 0, lit([0, 0], "int64"), t(2, 2)),
         s(t(3), 0, lit([1], "int64"), t(1), alpha=2)),
    edit("Tensor.index_put_", s(t(3, 4), (lit([0, 1], "int64"), lit([1, 2], "int64")), t(2)),
         s(t(3), (lit([1, 1], "int64"),), t(2), True)),
    edit("Tensor.scatter_", s(t(3), 0, lit([2, 0], "int64"), t(2)), s(t(3), 0, lit([2], "int64"), 1.5),
         s(t(3), 0, lit([0, 0], "int64"), t(2), reduce="add")),
    edit("Tensor.masked_fill_", s(t(3), lit([True, False, True], "bool"), 0.0),
         errors=(s(t(3), lit([[True], [False]], "bool"), 1.0),)),
    edit("Tensor.masked_scatter_", s(t(3), lit([True, False, True], "bool"), t(2))),
    edit("Tensor.index_copy_", s(t(3), 0, lit([0, 2], "int64"), t(2))),
    edit("Tensor.index_fill_", s(t(3), 0, lit([0, 2], "int64"), 1.0)),
    edit("Tensor.clamp_", s(t(5), -0.5, 0.5), s(t(5), min=0.0)),
    edit("Tensor.lerp_", s(t(3), t(3), 0.3)),
    edit("Tensor.addcmul_", s(t(3), t(3), t(3), value=0.5)),
    edit("Tensor.addcdiv_", s(t(3), t(3), pos(3), value=-0.5)),
    *[edit(f"Tensor.{n}", *v) for n, v in (("unsqueeze_", (s(t(2, 3), 1),)),
         ("squeeze_", (s(t(1, 3)), s(t(1, 3, 1), 0), s(t(1, 3, 1), 0, 2), s(t(1, 3, 1), (0, 2)))), ("transpose_", (s(t(2, 3), 0, 1),)), ("t_", (s(t(2, 3)),)),
         ("swapaxes_", (s(t(2, 3), 0, 1),)))],
    edit("Tensor.resize_", s(t(2, 3), (3, 2)), s(t(2, 3), 2, 2), s(t(6), (2, 3)), grad=False),
    edit("Tensor.resize_as_", s(t(6), t(2, 3)), grad=False),
    edit("Tensor.as_strided_", s(t(6), (2, 2), (2, 1)), grad=False),
    edit("Tensor.set_", s(t(3), t(2, 2)), grad=False),
    edit("Tensor.cumsum_", s(t(3), 0)),
    edit("Tensor.tril_", s(t(3, 3))),
    edit("Tensor.triu_", s(t(3, 3))),
    edit("Tensor.addmm_", s(t(2, 2), t(2, 3), t(3, 2)), s(t(2, 2), t(2, 3), t(3, 2), beta=0.5, alpha=2)),
    edit("Tensor.scatter_reduce_", s(t(3), 0, lit([0, 0, 1], "int64"), t(3), "sum")),
    edit("Tensor.scatter_add_", s(t(3), 0, lit([0, 0, 1], "int64"), t(3))),
    edit("Tensor.detach_", s(t(3)), grad=False),
    edit("Tensor.requires_grad_", s(t(3)), s(t(3), False), grad=False, errors=(s(ints(3)),)),
    case("Tensor.apply_", s(t(3)), fn=lambda torch, x: x.apply_(lambda v: v * 2), grad=False, vmap=False),
    case("Tensor.sum_to_size", s(t(2, 3), 1, 3), s(t(2, 3), (2, 1)), errors=(s(t(2, 3), 2, 2),), vmap=False),
    case("Tensor.squeeze", s(t(1, 3, 1), 0, 2), s(t(1, 3, 1), -1, 0), s(t(2, 3), 0, 1), errors=(s(t(1, 3), 0, 0), s(t(1, 3), 0, 5), s(t(1, 3), 0, "1"))),
    case("Tensor.broadcast_to", s(t(1, 3), 2, 3), s(t(1, 3), (2, 3)), errors=(s(t(1, 3), 2, 2), s(t(1, 3), 2, "3"))),
    case("Tensor.count_nonzero", s(t(2, 3), 0, 1), s(t(2, 3), (1,)), grad=False, errors=(s(t(2, 3), 0, 0), s(t(2, 3), 0, "1"))),
    case("Tensor.is_same_size", s(t(2), t(2)), grad=False, vmap=False),
    case("Tensor.clone", s(FLIPPED), strides=True),
    case("Tensor.expm1", s(t(3))),
    case("Tensor.__deepcopy__", s(t(2, 3)), fn=lambda torch, x: __import__("copy").deepcopy(x), grad=False,
         vmap=False),
    case("Tensor.to_dense", s(t(2)), vmap=False),
    case("Tensor.register_hook", s(t(3)), fn=lambda torch, x: (lambda leaf: (leaf.register_hook(lambda g: g * 2),
         (leaf ** 2).sum().backward(), leaf.grad)[2])(x.clone().requires_grad_()), grad=False, vmap=False),
    case("Tensor.backward", s(t(3)),
         fn=lambda torch, x: (lambda leaf: ((leaf ** 2).sum().backward(), leaf.grad)[1])(x.clone().requires_grad_()),
         grad=False, vmap=False),
    case("Tensor.retain_grad", s(t(3)), fn=lambda torch,
         x: (lambda y: (y.retain_grad(), (y ** 2).sum().backward(), y.grad)[2])(x.clone().requires_grad_() * 2),
         grad=False, vmap=False),
    case("Tensor.unique", s(ints(6)), s(ints(6), return_counts=True), grad=False, vmap=False),
    case("Tensor.storage", s(t(2, 3)), fn=lambda torch, x: [len(x.storage()), list(x.storage())], grad=False,
         vmap=False),
    case("Tensor.untyped_storage", s(t(2, 3)), fn=lambda torch, x: [x.untyped_storage().nbytes(),
         x[1].untyped_storage().data_ptr() == x.untyped_storage().data_ptr()], grad=False, vmap=False),
    case("Tensor.share_memory_", s(t(2)), vmap=False, grad=False),
    case("Tensor.ravel", s(t(2, 3)), strides=True),
    *[case(f"torch._foreach_{n}", s([pos(2), pos(3)]), vmap=False, gradgrad=False) for n in ("sqrt", "neg", "exp",
         "abs", "reciprocal")],
    *[case(f"torch._foreach_{n}", s([t(2), t(3)], [pos(2), pos(3)]), s([t(2), t(3)], 2.0), vmap=False,
         gradgrad=False) for n in ("add", "sub", "mul", "div", "maximum")],
    case("torch._foreach_norm", s([t(2), t(3)]), vmap=False, gradgrad=False),
    case("torch._foreach_lerp", s([t(2), t(3)], [t(2), t(3)], 0.3), vmap=False, gradgrad=False),
    *[case(f"torch._foreach_{n}_", s([t(2), t(3)], *rest), fn=lambda torch, xs, *rest,
         n=n: (lambda ys: [getattr(torch, f"_foreach_{n}_")(ys, *rest), ys][1])([x * 1 for x in xs]), vmap=False,
         gradgrad=False, grad=False) for n, rest in (("add", (1.0,)), ("mul", (2.0,)), ("neg", ()), ("zero", ()),
         ("copy", ([t(2), t(3)],)), ("addcmul", ([t(2), t(3)], [t(2), t(3)], 0.5)), ("lerp", ([t(2), t(3)], 0.3)),
         ("div", (3.0,)))],
    case("torch.finfo", *[s(Name(d)) for d in ("float16", "bfloat16", "float32", "float64", "complex64",
         "float8_e4m3fn", "float8_e5m2")], fn=lambda torch, d: (lambda f: [f.bits, f.eps, f.max, f.min, f.tiny,
         f.smallest_normal, f.resolution, f.dtype, str(f)])(torch.finfo(d)), errors=(s(Name("int64")),), grad=False),
    case("torch.iinfo", *[s(Name(d)) for d in ("uint8", "int8", "int16", "int32", "int64")],
         fn=lambda torch, d: (lambda f: [f.bits, f.max, f.min, f.dtype, str(f)])(torch.iinfo(d)),
         errors=(s(Name("float32")),), grad=False),
    case("torch.typename", s(t(2)), s(3), s(ints(2)), grad=False, vmap=False),
    case("torch.detach", s(t(2))),
    case("torch.get_default_dtype", s(), grad=False),
    case("torch.is_grad_enabled", s(), grad=False),
    *[case(f"torch.{n}", s(), grad=False) for n in ("is_inference_mode_enabled", "is_autocast_cache_enabled",
         "are_deterministic_algorithms_enabled", "is_deterministic_algorithms_warn_only_enabled",
         "get_deterministic_debug_mode", "get_float32_matmul_precision", "is_anomaly_enabled",
         "is_warn_always_enabled")],
    case("torch.is_autocast_enabled", s(), s("cpu"), s("cuda"), grad=False),
    case("torch.get_autocast_dtype", s("cpu"), s("cuda"), grad=False),
    case("torch.set_num_threads", s(1), fn=lambda torch, n: (torch.set_num_threads(n), torch.get_num_threads()),
         errors=(s(0), s("a")), grad=False),
    case("torch.from_dlpack", s(t(2, 3)), fn=lambda torch, x: torch.from_dlpack(x.numpy()), grad=False, vmap=False),
    case("torch.vmap", s(t(2, 3)), fn=lambda torch, x: torch.vmap(lambda row: row.sum() * row)(x), vmap=False),
    case("torch.initial_seed", s(5), fn=lambda torch, n: (torch.manual_seed(n), torch.initial_seed())[1], grad=False),
    case("Tensor.as_subclass", s(t(2)), fn=lambda torch, x: (lambda kind: [type(y := x.as_subclass(kind)).__name__,
         type(y + 1).__name__, type(y.sum()).__name__, isinstance(y, torch.Tensor)])(type("Mine", (torch.Tensor,),
         {})), grad=False, vmap=False),
    case("Tensor.pin_memory", s(t(2)), fn=lambda torch, x: x.is_pinned(), grad=False, vmap=False),
    case("torch.is_storage", s(t(2)),
         fn=lambda torch, x: [torch.is_storage(x), torch.is_storage(x.untyped_storage())], grad=False, vmap=False),
    case("nn.functional.multi_head_attention_forward", s(t(3, 1, 4), t(12, 4), t(4, 4)), fn=lambda torch, x, w,
         o: torch.nn.functional.multi_head_attention_forward(x, x, x, 4, 2, w, None, None, None, False, 0.0, o, None),
         gradgrad=False, vmap=False, tol=5),
    setting("torch.set_default_dtype", s(Name("float64")), s(Name("int64")), restore=lambda torch: torch.float32,
            read=lambda torch: [torch.get_default_dtype(), torch.tensor(1.0), torch.zeros(1), torch.arange(2.0)]),
    setting("torch.set_default_tensor_type", s("torch.DoubleTensor"), restore=lambda torch: "torch.FloatTensor",
            read=lambda torch: torch.zeros(1)),
    setting("torch.set_default_device", s("cpu"), s("meta"), s("nowhere"), restore=lambda torch: None,
            read=lambda torch: [str(torch.get_default_device()), torch.zeros(2).device.type]),
    setting("torch.set_float32_matmul_precision", s("high"), s("wrong"), restore=lambda torch: "highest",
            read=lambda torch: torch.get_float32_matmul_precision()),
    setting("torch.use_deterministic_algorithms", s(True), restore=lambda torch: False,
            read=lambda torch: torch.are_deterministic_algorithms_enabled()),
]
