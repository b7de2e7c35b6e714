"""What parameters take, by their names, wherever the functions that `stubs.py` writes down do not say so themselves.

They are wide rather than wrong: where two functions of one parameter differ, either's arguments pass. tests/test_parameter_types.py compares them with PyTorch's stubs."""

SCOPE = {  # where the types are defined whose names are not Python's own
    "Tensor": "torchlike._tensor:Tensor", "dtype": "torchlike._core.dtype:dtype", "DeviceLike": "torchlike._core.device:DeviceLike", "layout": "torchlike.ops.layouts:layout",
    "Generator": "torchlike.ops.random:Generator", "memory_format": "torchlike.ops.memory_formats:memory_format", "Sequence": "collections.abc:Sequence",
    "Callable": "collections.abc:Callable", "Any": "typing:Any"}

_SIZES = "int | Sequence[int]"
_NAMES = {  # `function.parameter` where one takes something else than others of its name
    "Any": "data obj index buffer array context protocol equation stream set_.source",
    "Tensor": "input A B LD LU a b pivots tau y tensor tensor_split.tensor_indices_or_sections binomial.count",
    "Tensor | None": "bias running_mean running_var b_ih b_hh window pos_weight weight attn_mask _random_samples backward.gradient trapezoid.x trapz.x cumulative_trapezoid.x",
    "dtype": "set_default_dtype.d", "dtype | None": "dtype out_dtype",
    "DeviceLike | None": "device", "layout | None": "layout", "Generator | None": "generator", "memory_format | None": "memory_format",
    "bool": "keepdim unbiased use_deterministic_algorithms.mode set_flush_denormal.mode",
    "bool | None": "requires_grad pin_memory size_average reduce copy warn_only backward.retain_graph",
    "int": "sections set_num_threads.n set_num_interop_threads.n manual_seed.seed", "int | None": "steps", "float": "norm_type",
    "complex": "beta fill_value dx step scalar_tensor.s", "complex | None": "alpha correction initial",
    "str": "filename", "float | str | None": "ord p", "type | str": "set_default_tensor_type.t",
    "Tensor | int": "zero_point repeats", "Tensor | float": "q scale mean std var bernoulli.p bernoulli_.p", "Tensor | float | None": "atol rtol tol rcond",
    "Tensor | complex": "other exponent value start end x n low high element test_element lerp.weight lerp_.weight isin.elements isin.test_elements",
    "Tensor | complex | None": "min max",
    "Sequence[int]": "normalized_shape split_sizes pad sizes physical_layout indices", "Sequence[float] | None": "range", "Sequence[Tensor]": "hx multi_dot.tensors",
    "Sequence[Tensor | None] | None": "index_put.indices index_put_.indices", "Tensor | Sequence[Tensor] | None": "out backward.inputs",
    _SIZES: "kernel_size dilation output_padding shape dims source destination shifts split_size split_size_or_sections size indices_or_sections",
    f"{_SIZES} | None": "dim stride s", f"{_SIZES} | str": "padding", "int | Sequence[int | None] | None": "output_size",
    f"{_SIZES} | Sequence[Sequence[int]] | Tensor": "tensordot.dims", f"Tensor | {_SIZES}": "tensor_split.indices_or_sections",
    "Tensor | Sequence[int]": "input_lengths target_lengths",
    f"Tensor | {_SIZES} | Sequence[Tensor]": "bins", "float | Sequence[float] | None": "scale_factor output_ratio",
    "complex | Sequence[complex] | Sequence[Tensor] | None": "gradient.spacing", "bool | Sequence[memory_format]": "dim_order.ambiguity_check",
    "Callable": "callable", "Callable | None": "distance_function",
}
BY_NAME = {name: kind for kind, names in _NAMES.items() for name in names.split()}
