"""Small names that libraries on top of torch (transformers, accelerate) ask for when they are imported."""
from same import error, same


@same
def test_a_dictionary_flattened_with_its_keys(torch):
    pairs, context = torch.utils._pytree._dict_flatten_with_keys({"a": 1, 2: 3})
    return [(str(k), v) for k, v in pairs], context


@same
def test_graphs_need_a_gpu(torch):
    return isinstance(torch.cuda.CUDAGraph, type), error(torch.cuda.CUDAGraph), error(torch.cuda.graph, None)


@same
def test_marks_of_the_compiler(torch):
    def f():
        return 1
    marked = torch._dynamo.assume_constant_result(f)
    module = torch.compile(torch.nn.Linear(2, 2))
    return (marked is f, f.__dict__, torch.compiler.assume_constant_result(f) is f,
            isinstance(module, torch._dynamo.eval_frame.OptimizedModule))


@same
def test_scalar_tensors_as_indices_under_vmap(torch):
    from importlib import import_module
    mode = import_module(f"{torch.__name__}._dynamo._trace_wrapped_higher_order_op").TransformGetItemToIndex
    x = torch.arange(12).reshape(3, 4)
    with mode():
        outside = x[torch.tensor(1)]
        inside = torch.vmap(lambda i, j: x[i, j])(torch.tensor([0, 1]), torch.tensor([2, 3]))
    return outside, inside


def test_several_processes_are_not_available(subject):
    from torchlike import distributed
    assert not distributed.is_available() and not distributed.is_initialized()
