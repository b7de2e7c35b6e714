"""What parameters take, by their names, wherever the functions that `stubs.py` writes down do not say so themselves.

They are wide rather than wrong: where two functions of one parameter differ, either's arguments pass. tests/test_parameter_types.py compares them with PyTorch's stubs."""

SCOPE = {  # where the types are defined whose names are not Python's own
    "Tensor": "torchlike._tensor:Tensor", "dtype": "torchlike._core.dtype:dtype", "DeviceLike": "torchlike._core.device:DeviceLike", "layout": "torchlike.ops.layouts:layout",
    "Generator": "torchlike.ops.random:Generator", "memory_format": "torchlike.ops.memory_formats:memory_format", "Sequence": "collections.abc:Sequence",
    "Callable": "collections.abc:Callable", "Any": "typing:Any"}

_SIZES, _TENSOR, _NUMBER, _EITHER, _FLAG = "int | Sequence[int]", "Tensor | None", "complex", "Tensor | complex", "bool | None"

_NAMES = {
    "Tensor": "input A B LD LU a b pivots tau y tensor", "Any": "data obj index buffer array context protocol equation stream",
    _TENSOR: "bias running_mean running_var b_ih b_hh window pos_weight weight attn_mask _random_samples element_weights",
    "dtype | None": "dtype out_dtype", "DeviceLike | None": "device", "layout | None": "layout", "Generator | None": "generator", "memory_format | None": "memory_format",
    "Tensor | Sequence[Tensor] | None": "out",
    "bool": "keepdim unbiased", _FLAG: "requires_grad pin_memory size_average reduce copy warn_only",
    _NUMBER: "beta fill_value dx step", "complex | None": "alpha correction initial", "float": "norm_type",
    "float | str | None": "ord p", "Tensor | float | None": "atol rtol tol rcond",
    _EITHER: "other exponent value start end x n low high element test_element", "Tensor | complex | None": "min max",
    "Tensor | float": "q scale mean std var", "Tensor | int": "zero_point repeats",
    "Tensor | int | Sequence[int] | Sequence[Tensor]": "bins", "Sequence[float] | None": "range", "Tensor | Sequence[int]": "input_lengths target_lengths",
    _SIZES: "kernel_size dilation output_padding shape dims source destination shifts split_size split_size_or_sections size indices_or_sections",
    f"{_SIZES} | None": "dim stride s", f"{_SIZES} | str": "padding", "int | Sequence[int | None] | None": "output_size",
    "Sequence[int]": "normalized_shape split_sizes pad sizes physical_layout indices", "int": "sections", "int | None": "steps",
    "float | Sequence[float] | None": "scale_factor output_ratio",
    "Callable": "callable", "str": "filename", "Sequence[Tensor]": "hx",
}
BY_NAME = {name: kind for kind, names in _NAMES.items() for name in names.split()}

# where a function's parameter takes something else: by the function and the parameter
BY_FUNCTION = {
    ("lerp", "weight"): _EITHER, ("lerp_", "weight"): _EITHER, ("index_put", "indices"): "Sequence[Tensor | None] | None",
    ("index_put_", "indices"): "Sequence[Tensor | None] | None",
    ("tensordot", "dims"): f"{_SIZES} | Sequence[Sequence[int]] | Tensor", ("tensor_split", "indices_or_sections"): f"Tensor | {_SIZES}",
    ("tensor_split", "tensor_indices_or_sections"): "Tensor", ("bernoulli", "p"): "Tensor | float", ("bernoulli_", "p"): "Tensor | float",
    ("scalar_tensor", "s"): _NUMBER, ("set_num_threads", "n"): "int", ("set_num_interop_threads", "n"): "int",
    ("trapezoid", "x"): _TENSOR, ("trapz", "x"): _TENSOR, ("cumulative_trapezoid", "x"): _TENSOR, ("isin", "elements"): _EITHER,
    ("isin", "test_elements"): _EITHER,
    ("gradient", "spacing"): "complex | Sequence[complex] | Sequence[Tensor] | None",
    ("binomial", "count"): "Tensor", ("dim_order", "ambiguity_check"): "bool | Sequence[memory_format]",
    ("triplet_margin_with_distance_loss", "distance_function"): "Callable | None", ("use_deterministic_algorithms", "mode"): "bool", ("set_flush_denormal", "mode"): "bool",
    ("set_", "source"): "Any",
    ("backward", "gradient"): _TENSOR, ("backward", "retain_graph"): _FLAG, ("backward", "inputs"): "Tensor | Sequence[Tensor] | None",
    ("manual_seed", "seed"): "int", ("set_default_dtype", "d"): "dtype", ("set_default_tensor_type", "t"): "type | str", ("multi_dot", "tensors"): "Sequence[Tensor]",
}
