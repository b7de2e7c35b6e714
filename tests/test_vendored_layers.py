"""What copies of PyTorch's own layers and training loops call that has no public name, beside real torch."""
import copy
import io

import pytest
from same import caught, same

SIZES = {"batch": 2, "length": 4, "width": 6, "heads": 2}


def _weights(torch):
    torch.manual_seed(5)
    e = SIZES["width"]
    return [torch.randn(3 * e, e), torch.randn(3 * e), torch.randn(e, e), torch.randn(e)]


def _input(torch):
    torch.manual_seed(6)
    return torch.randn(SIZES["batch"], SIZES["length"], SIZES["width"])


def _masks(torch):
    """(mask, its type)"""
    n = SIZES["length"]
    causal, padding = torch.ones(n, n, dtype=torch.bool).triu(1), torch.tensor([[False, False, False, True], [False, True, True, True]])
    each = (causal | padding[:, None, None]).expand(2, 2, n, n).contiguous()
    return [(None, None), (causal, 0), (torch.zeros(n, n).masked_fill(causal, float("-inf")), 0), (padding, 1), (each, 2)]


@same
def test_native_attention(torch):
    x, weights, found = _input(torch), _weights(torch), []
    for mask, kind in _masks(torch):
        for options in ({}, {"average_attn_weights": False}, {"need_weights": False}):
            found.append(torch._native_multi_head_attention(x, x, x, 6, 2, *weights, mask, mask_type=kind, **options))
    nothing = torch.tensor([[False] * 4, [True] * 4])
    for need in (True, False):
        found.append(torch._native_multi_head_attention(x, x, x, 6, 2, *weights, nothing, need, mask_type=1))
    found.append(torch._native_multi_head_attention(x, x + 1, x * 2, 6, 2, *weights))
    return found


@same
def test_native_attention_refuses(torch):
    x, weights = _input(torch), _weights(torch)
    padding = torch.zeros(2, 4, dtype=torch.bool)
    attend = torch._native_multi_head_attention
    return [caught(f) for f in (lambda: attend(x[0], x[0], x[0], 6, 2, *weights), lambda: attend(x, x[:, :2], x, 6, 2, *weights),
                                lambda: attend(x, x, x, 6, 4, *weights), lambda: attend(x, x, x, 6, 2, *weights, padding),
                                lambda: attend(x, x, x, 6, 2, *weights, padding, mask_type=3), lambda: attend(x, x, x, 6, 2, *weights, padding[:, 1:], mask_type=1),
                                lambda: attend(x, x, x, 6, 2, *weights, padding, mask_type=0))]


def _layer(torch, x, gelu, first, mask=None, kind=None):
    torch.manual_seed(7)
    norms = [torch.rand(6), torch.randn(6), torch.rand(6), torch.randn(6)]
    return torch._transformer_encoder_layer_fwd(x, 6, 2, *_weights(torch), gelu, first, 1e-5, *norms, torch.randn(8, 6), torch.randn(8), torch.randn(6, 8),
                                                torch.randn(6), mask, kind)


@same
def test_encoder_layer(torch):
    return [_layer(torch, _input(torch), gelu, first, *given) for gelu in (False, True) for first in (False, True) for given in _masks(torch)]


def test_encoder_layer_is_that_of_the_module(subject):
    layer = subject.nn.TransformerEncoderLayer(6, 2, 8, batch_first=True, norm_first=True, activation="gelu").eval()
    a, x = layer.self_attn, _input(subject)
    found = subject._transformer_encoder_layer_fwd(
        x, 6, 2, a.in_proj_weight, a.in_proj_bias, a.out_proj.weight, a.out_proj.bias, True, True, layer.norm1.eps, layer.norm1.weight, layer.norm1.bias,
        layer.norm2.weight, layer.norm2.bias, layer.linear1.weight, layer.linear1.bias, layer.linear2.weight, layer.linear2.bias)
    subject.testing.assert_close(found, layer(x))


@same
def test_padded_sequences_as_nested_tensors(torch):
    x = _input(torch)
    kept = torch.tensor([[True, True, True, False], [True, False, False, False]])
    n = torch._nested_tensor_from_mask(x, kept)
    apart = torch.tensor([[True, False, True, False], [True, False, False, False]])
    attended = torch._native_multi_head_attention(n, n, n, 6, 2, *_weights(torch), None, False)
    weighed = torch._native_multi_head_attention(n, n, n, 6, 2, *_weights(torch))
    refused = [caught(f) for f in (lambda: torch._nested_tensor_from_mask(x, apart), lambda: torch._nested_tensor_from_mask(x, kept.float()),
                                   lambda: torch._nested_tensor_from_mask(x, kept[0]), lambda: torch._nested_tensor_from_mask(x[0], kept),
                                   lambda: torch._nested_tensor_from_mask(x, kept[:, 1:]))]
    return ([t.clone() for t in n.unbind()], [t.clone() for t in torch._nested_tensor_from_mask(x, apart, mask_check=False).unbind()],
            torch._nested_tensor_from_mask_left_aligned(x, kept), torch._nested_tensor_from_mask_left_aligned(x, apart),
            [t.clone() for t in _layer(torch, n, True, False).unbind()], [t.clone() for t in attended[0].unbind()], attended[1],
            [t.clone() for t in weighed[0].unbind()], weighed[1], refused)


@same
def test_packing(torch):
    x = _input(torch).requires_grad_()
    data, sizes = torch._VF._pack_padded_sequence(x, torch.tensor([4, 2]), True)
    back = [torch._VF._pad_packed_sequence(data, sizes, first, fill, n) for first, fill, n in ((True, -1.0, -1), (False, 0.0, 6), (True, 0.0, 0))]
    back[0][0].square().sum().backward()
    return data, sizes, back, x.grad, caught(lambda: torch._VF._pad_packed_sequence(data, sizes, True, 0.0, 3))


@same
def test_unscaling_of_gradients(torch):
    found = []
    for bad in (1.0, float("inf"), float("nan")):
        for shape in (slice(None), slice(1, 3)):
            g = torch.arange(16.0).reshape(4, 4)
            g[2, 2] = bad
            gradients = [torch.full((3,), 4.0, dtype=torch.float64), g[:, shape], g.half(), torch.ones(())]
            inf = torch.zeros(1)
            assert torch._amp_foreach_non_finite_check_and_unscale_(gradients, inf, torch.full((1,), 0.25)) is None
            found.append([inf, *gradients, g])
    kept = torch.ones(1)
    torch._amp_foreach_non_finite_check_and_unscale_([torch.ones(2)], kept, torch.ones(1))
    run = torch._amp_foreach_non_finite_check_and_unscale_
    return found, kept, [caught(f) for f in (lambda: run([torch.ones(2)], torch.zeros(2), torch.ones(1)),
                                             lambda: run([torch.ones(2)], torch.zeros(1, dtype=torch.float64), torch.ones(1)),
                                             lambda: run([torch.ones(2)], torch.zeros(1), torch.ones(2)),
                                             lambda: run([torch.ones(2, dtype=torch.int64)], torch.zeros(1), torch.ones(1)))]


@same
def test_updates_of_the_scale(torch):
    scale, count, inf = torch.tensor([4.0]), torch.zeros(1, dtype=torch.int32), torch.zeros(1)
    steps = []
    for bad in (0, 0, 1, 0, 0, 2, 0):
        inf.fill_(bad)
        assert torch._amp_update_scale_(scale, count, inf, 2.0, 0.25, 2) is scale
        steps.append((scale.clone(), count.clone()))
    huge = torch.tensor([3e38])
    torch._amp_update_scale_(huge, torch.ones(1, dtype=torch.int32), torch.zeros(1), 2.0, 0.25, 2)
    alone = torch._amp_update_scale_(torch.tensor(8.0), torch.zeros((), dtype=torch.int32), torch.ones(()), 2.0, 0.5, 2)
    return steps, huge, alone, [caught(f) for f in (lambda: torch._amp_update_scale_(torch.ones(2), count, inf, 2.0, 0.25, 2),
                                                    lambda: torch._amp_update_scale_(scale, torch.zeros(1), inf, 2.0, 0.25, 2))]


@same
def test_number_of_the_backward(torch):
    """It tells what runs again inside of a backward from what runs before."""
    seen = [torch._C._current_graph_task_id()]
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: seen.append(torch._C._current_graph_task_id()))
    y.register_hook(lambda g: seen.append(torch._C._current_graph_task_id()))

    def inner(z):
        if z.requires_grad and torch.is_grad_enabled():
            seen.append(torch._C._current_graph_task_id())
        return z.sin()
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    before = len(seen)
    torch.utils.checkpoint.checkpoint(inner, x, use_reentrant=False).sum().backward()
    first, *within = seen[:before]
    return first, len(within), within[0] == within[1] >= 0, within[1] != within[2], seen[before], seen[-1] >= 0, torch._C._current_graph_task_id()


@same
def test_names_of_the_c_part(torch):
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    with torch.no_grad():
        off = torch._C.is_grad_enabled()
    return ([isinstance(n, torch._C._functions.AccumulateGrad) for n in (y.grad_fn, y.grad_fn.next_functions[0][0], None)], off, torch._C.is_grad_enabled(),
            [isinstance(v, c) for v in (x, torch.nn.Parameter(x.detach()), 1.0) for c in (torch._C.TensorBase, torch._C._TensorBase)],
            torch._dim_arange(x, 0), torch._dim_arange(torch.ones(3, 5), -1))


@same
def test_files_by_their_records(torch, tmp_path):
    torch.save({"a": torch.ones(2)}, tmp_path / "a.pt")
    torch.save({"a": torch.ones(2)}, old := io.BytesIO(), _use_new_zipfile_serialization=False)
    old.seek(0)
    s = torch.serialization
    with s._open_file_like(str(tmp_path / "a.pt"), "rb") as file:
        position = s._is_zipfile(file), file.tell()
        with s._open_zipfile_reader(file) as reader:
            records = reader.has_record("data.pkl"), reader.has_record("x"), bytes(reader.get_record("data/0"))
            start, refused = reader.get_record_offset("data/0"), type(caught(lambda: reader.get_record_offset("data/7")))
    with s._open_file_like(old, "rb") as file:
        legacy = s._is_zipfile(file), file is old
    with s._open_file_like(str(tmp_path / "b"), "wb") as file:
        file.write(b"ab")
    assert (tmp_path / "a.pt").read_bytes()[start:start + 8] == records[2]
    return position, records, refused, legacy, old.closed, (tmp_path / "b").read_bytes(), caught(lambda: s._open_file_like(old, "a").__enter__())


@pytest.mark.parametrize("mask", [False, True])
def test_a_copied_encoder(subject, oracle, mask):
    """A layer whose forward is that of PyTorch 2's, as libraries copy it."""
    def run(torch):
        class Layer(torch.nn.TransformerEncoderLayer):
            def forward(self, src, padding=None):
                a = self.self_attn
                return torch._transformer_encoder_layer_fwd(
                    src, a.embed_dim, a.num_heads, a.in_proj_weight, a.in_proj_bias, a.out_proj.weight, a.out_proj.bias, False, self.norm_first, self.norm1.eps,
                    self.norm1.weight, self.norm1.bias, self.norm2.weight, self.norm2.bias, self.linear1.weight, self.linear1.bias, self.linear2.weight,
                    self.linear2.bias, padding, None if padding is None else 1)
        torch.manual_seed(1)
        layers = [copy.deepcopy(Layer(6, 2, 8, batch_first=True)) for _ in range(2)]
        x = _input(torch)
        padding = _masks(torch)[3][0]
        with torch.no_grad():
            if mask:
                n = torch._nested_tensor_from_mask(x, ~padding, mask_check=False)
                for layer in layers:
                    n = layer(n)
                return n.to_padded_tensor(0.0, x.shape).numpy()
            for layer in layers:
                x = layer(x, padding)
            return x.numpy()
    assert abs(run(subject) - run(oracle)).max() < 1e-5


@same
def test_old_names(torch):
    """vmap's, fork's and unique's."""
    import importlib
    import warnings
    old = importlib.import_module(torch.__name__ + "._vmap_internals")
    x, z = torch.tensor([1.0, 2.0, 3.0], requires_grad=True), torch.ones(3, requires_grad=True)
    y, rows = x ** 2, torch.eye(3)

    def gradients(v):
        return torch.autograd.grad(y, (x, z), v, retain_graph=True, allow_unused=True)
    with warnings.catch_warnings(record=True) as caught_:
        warnings.simplefilter("always")
        public = old.vmap(torch.dot, in_dims=(0, None))(rows, torch.ones(3))
    t = torch.tensor([2, 1, 2])
    return (old._vmap(lambda v: gradients(v)[0])(rows), old._vmap(gradients, allow_none_pass_through=True)(rows),
            old._vmap(lambda v: (v, None, v * 2), out_dims=(0, 0, 1), allow_none_pass_through=True)(rows), type(caught(lambda: old._vmap(gradients)(rows))),
            public, [w.category.__name__ for w in caught_], torch._unique(t), torch._unique(t, True, True), torch._unique(t, sorted=False, return_inverse=True),
            torch.jit._wait(torch.jit._fork(torch.add, torch.ones(1), 2)))
