"""What torch's functions take as `out=`: most write into any dtype that the result may be cast to, others into their own only."""
from __future__ import annotations

from ._core import dtype as dt
from ._core.rng_dtypes import cpp_type

_CASTS = "result type {need} can't be cast to the desired output type {have}"
_OWN = "Expected out tensor to have dtype {need_c}, but got {have_c} instead"
_FOUND = "Found dtype {have} but expected {need}"
_PRODUCT = "result dtype {have} does not match input dtype {need}"
_SCALAR = "expected scalar_type {need} but found {have}"
_SELF = "{name}(): self and result must have the same scalar type"
_NORM = "linalg.{name} expected out tensor dtype {need} but got: {have}"
_SAFELY = "{name}: Expected {result} to be safely castable from {need} dtype, but got {result} with dtype {have}"


def _each(text: str, names: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), text)


# torch's words where an output is not of the result's own dtype; one text, or one for each result
_STRICT: dict[str, str | tuple[str, ...]] = {
    **_each(_OWN, """
        addmm addmv baddbmm bmm mm linear cross linalg_cross isin lu_unpack lu_solve linalg_lu_solve max min softmax log_softmax aminmax topk qr svd
        triangular_solve gather scatter scatter_add scatter_reduce index_copy index_add index_reduce sort msort renorm take_along_dim tril triu norm
        argmax argmin slice_scatter linalg_det linalg_cholesky cholesky_ex eigh eigvalsh ldl_factor ldl_factor_ex ldl_solve linalg_qr
        linalg_slogdet vector_norm lu_factor lu_factor_ex lu inv inv_ex solve solve_ex linalg_svd svdvals diag avg_pool2d avg_pool3d
        alias_copy as_strided_copy detach_copy diagonal_copy expand_copy permute_copy select_copy slice_copy split_copy split_with_sizes_copy
        squeeze_copy t_copy transpose_copy unbind_copy unfold_copy unsqueeze_copy view_copy view_as_complex_copy view_as_real_copy"""),
    **_each(_FOUND, "abs bitwise_not ceil conj_physical frac floor neg round sign sgn trunc softshrink hardshrink softplus gelu"),
    **_each(_PRODUCT, "dot vdot"),
    **_each(_SCALAR, "cummax cummin diff logcumsumexp"),
    **_each(_SELF, "masked_select index_select"),
    **_each("{name} does not support non-boolean outputs.", "signbit isposinf isneginf"),
    **_each("expected scalar type {need} but found {have}", "native_batch_norm solve_triangular"),
    **_each("tensordot: Expected the output tensor to have dtype {need}, but got an output tensor with dtype {have}", "tensordot inner"),
    **_each("Expected object of scalar type {need} but got scalar type {have} for argument 'out'", "complex polar"),
    **_each("{name}() out tensor must be same dtype as the input tensor", "quantile nanquantile"),
    **_each("Expected the dtype for input and out to match, but got {need} for input's dtype and {have} for out's dtype.", "amax amin"),
    **_each(("Expected tensor for 'values' to have the same type as tensor for argument #2 'self'; but type {have_t} does not equal {need_t} "
             "(while checking arguments for median)",
             "Expected tensor for argument #1 'indices' to have scalar type {need}; but got {have_t} instead (while checking arguments for median)"),
            "median nanmedian"),
    "addbmm": "self and mat2 must have the same dtype, but got {have} and {need}",
    "mv": "addmv input tensors must have the same dtype, but got {have}, {need}, and {need}",
    "where": "Expected out type to be {need} but got {have}",
    "take": "take(): self and out expected to have the same dtype, but got self.dtype = {need} and out.dtype = {have}",
    "nan_to_num": "nan_to_num: dtype of out: {have} should be same as input: {need}",
    "heaviside": "heaviside is not yet implemented for tensors with different dtypes.",
    "float_power": "the output given to float_power has dtype {have} but the operation's result requires dtype {need}",
    "narrow_copy": "Expected self.dtype() == output.dtype() to be true, but got false.  (Could this error message be improved?  If so, please report an "
                   "enhancement request to PyTorch.)",
    "frexp": ("torch.frexp() expects mantissa to have dtype {need_c} but got {have_c}", "torch.frexp() expects exponent to have int dtype but got {have_c}"),
    "kthvalue": ("output values must be of same type as input", "output indices must be of scalar type Long"),
    "mode": ("expected scalar type '{need}' but got '{have}' for values output", "expected scalar type '{need}' but got '{have}' for indices output"),
    "ormqr": "torch.ormqr: Expected input and result to have the same dtype, but input has dtype{need} and result has dtype {have}",
    "histc": "torch.histogram: input tensor and hist tensor should have the same dtype, but got input {need_c} and hist {have_c}",
    "histogram": ("torch.histogram: input tensor and hist tensor should have the same dtype, but got input {need_c} and hist {have_c}",
                  "torch.histogram: input tensor and bin_edges tensor should have the same dtype, but got input {need_c} and bin_edges {have_c} for "
                  "dimension 0"),
    "vecdot": "linalg.vecdot: Expected out of dtype{need} but found {have}",
    "linalg_multi_dot": "multi_dot(): expected out tensor to have dtype {need_c} but got {have_c}",
    "linalg_norm": "linalg.norm expected out tensor dtype {need} but got: {have}",
    "matrix_norm": "linalg.matrix_norm expected out tensor dtype {need} but got: {have}",
    "searchsorted": "torch.searchsorted(): output tensor's dtype is wrong, it can only be Int(int32) or Long(int64) depending on whether out_int32 flag is "
                    "True, but we got output tensor's dtype {have} and out_int32 flag is {flag}",
}
_STRICT["bucketize"] = _STRICT["searchsorted"]

# functions whose `out=` may share no memory with what they read; may share any, in torch too; and of those with several
# results, all or none of whose elements may be shared
APART = frozenset("""cat stack hstack vstack dstack column_stack take gather take_along_dim index_select masked_select kthvalue cross linalg_cross kron scatter
                     scatter_add index_add index_copy""".split())
WRITES_APART = frozenset("""index_add_ index_copy_ index_fill_ index_reduce_ index_put_ put_ scatter_ scatter_add_ scatter_reduce_""".split())  # in place
MADE_APART = frozenset("mm matmul tensordot dot".split())
PARTLY = frozenset({"sort", "topk", "frexp"})

# torch's words where the result cannot be cast to an output's dtype, of functions that write into others
_SAFE: dict[str, str | tuple[str, ...]] = {
    **{name: _SAFELY.replace("{name}", name).replace("{result}", "result") for name in (
        "cholesky", "cholesky_inverse", "cholesky_solve", "matrix_power", "tensorinv", "tensorsolve")},
    **{name: _SAFELY.replace("{name}", shown).replace("{result}", "result") for name, shown in (
        ("cond", "linalg.cond"), ("pinv", "linalg.pinv"), ("matrix_rank", "torch.linalg.matrix_rank"),
        ("householder_product", "torch.linalg.householder_product"))},
    "geqrf": tuple(_SAFELY.replace("{name}", "torch.geqrf").replace("{result}", r) for r in ("a", "tau")),
    "eig": tuple(_SAFELY.replace("{name}", "torch.linalg.eig").replace("{result}", r) for r in ("eigenvalues", "eigenvectors")),
    "eigvals": _SAFELY.replace("{name}", "torch.linalg.eigvals").replace("{result}", "eigenvalues"),
    "lstsq": tuple(_SAFELY.replace("{name}", "torch.linalg.lstsq").replace("{result}", r) for r in ("solution", "residuals", "rank", "singular_values")),
    "diag": "diag: result type {need} can't be cast to the desired out= type {have}",
    "ldexp": "ldexp can't be cast to the desired output type {have}",
    "mvlgamma": "mvlgamma: result type {need} can't be cast to the desired output type {have}",
    "logsumexp": "logsumexp(): Expected floating point type for result tensor, but got: {have}",
    "mean": "mean.dtype_out(): input types can't be cast to the desired output type {have}",
    **_each("torch.cat(): input types can't be cast to the desired output type {have}", "cat stack hstack vstack dstack column_stack"),
    **_each("Expected canCast( typeMetaToScalarType(self.dtype()), typeMetaToScalarType(out.dtype())) to be true, but got false.  (Could this error "
            "message be improved?  If so, please report an enhancement request to PyTorch.)", "max_of_all min_of_all"),
}
# functions that torch makes of others, which write into `out=` by their own rules: the other's name, from the operands
_MADE_OF = {
    "abs": lambda x: "absolute" if x.dtype.is_complex else "abs",  # of complex numbers: cast like most
    "inner": lambda x, y: "inner" if x.dim() and y.dim() else "mul",
    "matmul": lambda x, y: "mm" if y.dim() != 1 else "dot" if x.dim() == 1 else "mv",
}
BY_OUT = frozenset(("sum", "prod", "nansum", "nanmean", "cumsum", "cumprod", "mean"))  # see `by_out`
ALONG_DIM = frozenset(("sum", "prod", "median", "nanmedian"))  # have an `out=` only where `dim` is given

OF_ALL_IF_BOOL = frozenset(("var", "std"))  # have none where they are told `unbiased` alone


def by_out(name: str, have: dt.dtype, kwargs: dict) -> None:
    """A function that is told by `out=` in which dtype to compute; a `dtype=` besides has to be the same."""
    said = kwargs.get("dtype")
    if said is None:
        if name != "mean":
            kwargs["dtype"] = have
    elif said is not have and name != "nanmean":
        if name == "nansum":
            raise RuntimeError(f"nansum: provided dtype must match dtype of result. Got {have.short} and {said.short}.")
        raise RuntimeError(_OWN.format(need_c=cpp_type(said.np), have_c=cpp_type(have.np)))


def writer(name: str, args: tuple, kwargs: dict) -> str:
    """The function whose rules for `out=` a call of function `name` follows."""
    made_of = _MADE_OF.get(name)
    return name if made_of is None else made_of(*args, *kwargs.values())


def refuse_dtype(name: str, place: int, need: dt.dtype, have: dt.dtype) -> None:
    """torch's error where function `name` does not write its result number `place`, of dtype `need`, into a tensor of dtype `have`."""
    if name in ("any", "all"):
        if have is not dt.bool_ and have is not dt.uint8:
            raise RuntimeError(f"{name} only supports bool tensor for result, got: {have.short}")
        return
    castable = dt.can_cast(need, have)
    text = _STRICT.get(name)
    if text is None or (name == "diag" and not castable):
        if castable:
            return
        text = _SAFE.get(name, _CASTS)
    if text.__class__ is tuple:
        text = text[place]
    if name == "heaviside" and have.is_complex:
        text = "heaviside is not yet implemented for complex tensors."
    kind = TypeError if text.startswith("torch.cat") else RuntimeError
    raise kind(text.format(name=name, need=need.short, have=have.short, need_c=cpp_type(need.np), have_c=cpp_type(have.np), need_t=_tensor_type(need),
                           have_t=_tensor_type(have), flag=need is dt.int32))


def _tensor_type(d: dt.dtype) -> str:
    return f"CPU{d.short}Type" if d.category in (dt.BOOL, dt.COMPLEX) else f"torch.{d.short}Tensor"
