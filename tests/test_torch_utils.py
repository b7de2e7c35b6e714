"""`torch._utils`: flat buffers, chunks of tensors, exceptions from elsewhere."""
from same import error, same


@same
def test_flat_and_back(torch):
    u = torch._utils
    tensors = [torch.arange(6.0).view(2, 3), torch.ones(2, 2).t(), torch.empty(0, 3), torch.tensor(7.0)]
    flat = u._flatten_dense_tensors(tensors)
    views = u._unflatten_dense_tensors(flat, tensors)
    flat.mul_(2)
    alone = u._flatten_dense_tensors((tensors[0],))
    alone[0] = 9
    w = torch.ones(3, requires_grad=True)
    u._flatten_dense_tensors([w * 2, w.view(3, 1) * 3]).sum().backward()
    return [flat, views, [v.stride() for v in views], tensors[0], w.grad, type(views).__name__,
            u._unflatten_dense_tensors(torch.ones(0), []), u._flatten_dense_tensors([torch.ones(2), torch.ones(1).long()]),
            error(u._flatten_dense_tensors, []), error(u._flatten_dense_tensors, iter(tensors)),
            error(u._unflatten_dense_tensors, torch.ones(3), tensors)]


@same
def test_chunks_by_size_and_type(torch):
    u = torch._utils
    tensors = [torch.ones(3), torch.ones(2).double(), torch.ones(4), torch.ones(100), torch.ones(1).double(),
               torch.eye(3).to_sparse(), torch.ones(1)]
    found = [[[(t.type(), tuple(t.shape)) for t in chunk] for chunk in u._take_tensors(tensors, limit)]
             for limit in (1, 24, 30, 1000)]
    mixed = [t for chunk in u._take_tensors(tensors, 1000) for t in chunk]
    back = u._reorder_tensors_as(mixed, tensors)
    return [found, [a is b for a, b in zip(back, tensors)], u._element_size(torch.complex64), u._element_size(torch.bool),
            error(u._element_size, "float32")]


@same
def test_exceptions_travel(torch):
    u = torch._utils

    class Two(Exception):
        def __init__(self, a, b):
            super().__init__(a, b)

    def caught(make, **where):
        try:
            raise make()
        except Exception:
            wrapped = u.ExceptionWrapper(**where)
        try:
            wrapped.reraise()
        except Exception as again:
            text = str(again).splitlines()
            return [type(again).__name__, text[0], text[1][:24], text[-1]]

    return [caught(lambda: ValueError("no")), caught(lambda: KeyError("k"), where="in replica 0 on device 0"),
            caught(lambda: Two(1, 2)), u.ExceptionWrapper((OSError, OSError("x"), None)).exc_msg]
