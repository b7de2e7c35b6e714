"""torch._prims_common: what libraries ask of dtypes, shapes and strides."""
import importlib

import pytest
from same import same

ASKED = [
    'canonicalize_dim(3,-4)',
    'canonicalize_dim(3,-1)',
    'canonicalize_dim(0,0)',
    'canonicalize_dim(0,-1)',
    'canonicalize_dim(-1,0)',
    'canonicalize_dim(0,0,False)',
    'canonicalize_dims(3,(0,-1))',
    'canonicalize_dims(3,-1)',
    'infer_size((2,-1),6)',
    'infer_size((2,-1),7)',
    'infer_size((0,-1),0)',
    'infer_size((-1,-1),4)',
    'infer_size((2,3),7)',
    'infer_size_shapes((2,1),(3,))',
    'infer_size_shapes((2,2),(3,))',
    'reduction_dims((2,3),None)',
    'reduction_dims((2,3),(-1,))',
    'reduction_dims((2,3),(1,-1))',
    'compute_required_storage_length((2,3),(3,1),4)',
    'compute_required_storage_length((2,0),(3,1),4)',
    'is_valid_permutation(2,(1,0))',
    'is_valid_permutation(2,(1,1))',
    'is_same_shape((1,2),(1,2))',
    'is_expandable_to((1,2),(3,2))',
    'is_expandable_to((2,),(3,4))',
    'is_weakly_lesser_type(int,float)',
    'get_higher_type(bool,complex)',
    'get_higher_dtype(torch.int8,torch.float16)',
    'get_higher_dtype(None,torch.int8)',
    'get_higher_dtype(torch.float16,torch.bfloat16)',
    'get_higher_dtype(torch.uint8,torch.int8)',
    'get_dtype(1)',
    'get_dtype(True)',
    'get_dtype(x)',
    'extract_shape_from_varargs(((1,2),))',
    'extract_shape_from_varargs((1,2))',
    'extract_dims_from_varargs(((1,2),))',
    'compute_reduction_output_shape((2,3,4),(0,2))',
    'apply_perm([1,2,3],[2,0,1])',
    'invert_perm([2,0,1])',
    'prod([2,3])',
    'number_type(1.)',
    'set_correction()',
    'set_correction(unbiased=False)',
    'set_correction(correction=2)',
    'set_correction(True,1)',
    'dtype_or_default(None)',
    'reduction_dtypes(torch.ones(2,dtype=torch.int32),REDUCTION_OUTPUT_TYPE_KIND.SAME)',
    'reduction_dtypes(torch.ones(2,dtype=torch.complex64),REDUCTION_OUTPUT_TYPE_KIND.COMPLEX_TO_FLOAT)',
    'reduction_dtypes(torch.ones(2,dtype=torch.float16),REDUCTION_OUTPUT_TYPE_KIND.KEEP_PROMOTED_TYPE)',
    'reduction_dtypes(torch.ones(2),REDUCTION_OUTPUT_TYPE_KIND.ALWAYS_BOOL,torch.float64)',
    'is_contiguous(x.transpose(0,1))',
    'is_contiguous(torch.ones(0,2).t())',
    'is_channels_last_contiguous(x.to(memory_format=torch.channels_last))',
    'is_contiguous_for_memory_format(x,memory_format=torch.channels_last)',
    'is_contiguous_for_memory_format(x,memory_format=torch.preserve_format)',
    'is_non_overlapping_and_dense_or_false(x.transpose(0,1))',
    'is_non_overlapping_and_dense_or_false(x[:,::2])',
    'compute_elementwise_output_strides(x.transpose(0,1),torch.ones(3,2,4,5))',
    'compute_elementwise_output_strides(x.to(memory_format=torch.channels_last),torch.ones(5))',
    'compute_elementwise_output_strides()',
    'compute_elementwise_output_strides(x[:,:,::2], x[:,:,1::2])',
    'is_cpu_scalar_tensor(torch.tensor(1.))',
    'is_cpu_scalar_tensor(x)',
    'clone_preserve_strides(x.transpose(0,1)).stride()',
    'validate_no_repeating_dims((1,1))',
    'can_safe_cast_to(cast_to=torch.int32,cast_from=torch.float32)',
    'can_safe_cast_to(cast_to=torch.float32,cast_from=torch.int64)',
    'check_same_shape(torch.ones(2),torch.ones(3),allow_cpu_scalar_tensors=False)',
    'check_same_shape(torch.ones(2),torch.ones(()),allow_cpu_scalar_tensors=True)',
    'check_same_dtype(torch.ones(2),torch.ones(2).int())',
    'check_same_dtype(torch.ones(2),1)',
    "check_same_device(torch.ones(2),torch.ones(2,device='meta'),allow_cpu_scalar_tensors=False)",
    'extract_shape(torch.ones(2),torch.ones(()),allow_cpu_scalar_tensors=True)',
    'extract_shape(1,allow_cpu_scalar_tensors=True)',
    "make_contiguous_strides_for((2, 0, 3))", "make_contiguous_strides_for(())", "make_contiguous_strides_for((4, 2, 3), row_major=False)",
    "make_channels_last_strides_for((2, 3, 4, 5))", "make_channels_last_strides_for((2, 3, 4))", "make_channels_last_strides_for((2, 3, 4, 5, 6))",
    "make_channels_last_strides_for((2, 3))", "suggest_memory_format(x)", "suggest_memory_format(x.to(memory_format=torch.channels_last))",
]
DTYPES = "float32 bool int8 uint16 complex64 float16 bfloat16 float8_e4m3fn".split()


def module(torch):
    return importlib.import_module(f"{torch.__name__}._prims_common")


@pytest.mark.parametrize("asked", ASKED)
def test_shapes_strides_and_dtypes(oracle, subject, asked):
    """The answer, or the error and its words."""
    found = []
    for torch in (oracle, subject):
        names = {**vars(module(torch)), "torch": torch, "x": torch.ones(2, 3, 4, 5)}
        try:
            found.append(str(eval(asked, names)))
        except Exception as error:
            found.append((type(error).__name__, str(error)))
    assert found[0] == found[1]


@same
def test_questions_about_a_dtype(torch):
    p = module(torch)
    for name in ("dtype_to_type", "corresponding_real_dtype", "corresponding_complex_dtype", "get_computation_dtype", "is_integer_dtype", "is_float_dtype",
                 "is_boolean_dtype", "is_complex_dtype", "is_grad_dtype", "is_low_precision_dtype"):
        for dtype in DTYPES:
            try:
                yield name, dtype, str(getattr(p, name)(getattr(torch, dtype)))
            except KeyError:
                yield name, dtype, "KeyError"


@same
def test_dtypes_of_elementwise_operations(torch):
    p = module(torch)
    calls = ((torch.ones(2, dtype=torch.int32), 1), (torch.ones(2, dtype=torch.bfloat16), torch.ones((), dtype=torch.float64)),
             (torch.ones(2, dtype=torch.complex64), 1.0), (torch.ones(2, dtype=torch.bool), True), (1, 2.0), (torch.ones(2, dtype=torch.int32), 1.5),
             (torch.ones((), dtype=torch.int64), 2.5, torch.ones(2, dtype=torch.float16)), (torch.ones(2, dtype=torch.bfloat16), 1j))
    for kind in p.ELEMENTWISE_TYPE_PROMOTION_KIND:
        for call in calls:
            yield kind.name, [str(d) for d in p.elementwise_dtypes(*call, type_promotion_kind=kind)]
