"""Short programs whose last expression both libraries must print alike: values, or the error's class and first line, and warnings.

One program a line, statements separated by semicolons.
"""
import importlib
import inspect
import re
import warnings

import pytest

INDEXING = """
a = torch.arange(6.).view(2, 3); t = torch.tensor(1, dtype=torch.uint8); a[t]
a = torch.arange(6.).view(2, 3); t = torch.tensor(0, dtype=torch.uint8); a[t]
a = torch.arange(6.).view(2, 3); t = torch.tensor(1, dtype=torch.uint8); a[0, t]
a = torch.arange(6.).view(2, 3); t = torch.tensor([1, 0], dtype=torch.uint8); a[t]
a = torch.arange(6.).view(2, 3); t = torch.tensor([1, 0], dtype=torch.uint8); a[t] = 7; a
a = torch.arange(6.).view(2, 3); t = torch.tensor(1, dtype=torch.uint8); a[t] = torch.ones(1, 1, 2, 3); a
a = torch.tensor(5); t = torch.tensor(0, dtype=torch.uint8); a[t] = 3; a
a = torch.tensor(5); a[torch.tensor(True)] = 3; a
a = torch.arange(3); a.__delitem__(0)
torch.unravel_index(torch.tensor(0.5), (2, 2))
torch.unravel_index(torch.tensor([1]), (2.0, 2))
torch.unravel_index(torch.tensor([1]), (2, -2))
torch.unravel_index(torch.tensor(3), torch.tensor([2, 2]))
x = torch.empty(10, 0); x[:, [0, 1]]
torch.ones(2).put(torch.tensor([0]), torch.ones(2))
x = torch.empty(0); x[torch.tensor([0])]
x = torch.empty(3, 0); x[torch.tensor([5])]
a = torch.arange(4); m = torch.tensor([False] * 4); a[m] = torch.tensor([1., 2.])
a = torch.arange(4); m = torch.tensor([True, True, False, False]); a[m] = torch.tensor([1, 2, 3])
a = torch.arange(4); a[torch.tensor([0, 1])] = torch.tensor([1., 2.])
a = torch.arange(4); a[a > 1] = torch.tensor(1.5); a
a = torch.zeros(4, 4); a[[0, 1], [0, 1]] = torch.ones(2, 2)
a = torch.zeros(4, 4); a[[[0, 1], [1, 2]]].shape
a = torch.arange(3); a.index_put_((torch.tensor([0, 3]),), torch.tensor([1, 2]))
a = torch.arange(3.); a.index_put_((torch.tensor([0]),), torch.tensor([1]))
a = torch.arange(6).view(2, 3); torch.ops.aten.index_put(a, [None, torch.tensor([0])], torch.tensor([9]))
"""
VIEWS = """
x = torch.ones(2, 3); x._is_view(), x[0]._is_view(), x.detach()._is_view(), x.view(torch.int32)._is_view(), x.expand(4, 2, 3)._is_view()
x = torch.arange(24.).view(4, 6); x[:, ::2].view(torch.float64)
x = torch.arange(24.).view(4, 6); y = x[:, 2:4].view(torch.float64); y.shape, y.stride(), y.storage_offset()
x = torch.arange(24.).view(4, 6); x[:, 1:3].view(torch.float64)
x = torch.arange(15.).view(3, 5); x[:, :2].view(torch.float64)
x = torch.arange(24., dtype=torch.float64).view(4, 6); y = x[::2, 1:3].view(torch.float32); y.shape, y.stride(), y.storage_offset()
x = torch.arange(24., dtype=torch.float64).view(4, 6); x.t().view(torch.float32)
x = torch.arange(24., dtype=torch.float64).view(4, 6); x.t().view(torch.int64).stride()
x = torch.ones(2, 5, 256)[1::2, 1:, ::2]; x.view(torch.float32).stride()
torch.tensor(1.).view(torch.int32)
torch.tensor(1.).view(torch.int64)
torch.empty(()).resize_([2, 4, 2**29, 2**30])
torch.empty(()).resize_([8, 8, 2**29, 2**29])
torch.empty(()).resize_([0, 4, 2305843009213693952])
torch.randn(60).resize_((1, 3, 4, 5), memory_format=torch.channels_last).stride()
torch.randn(1, 3, 4, 5).resize_((1, 3, 4, 5), memory_format=torch.channels_last).stride()
torch.randn(6).resize_((2, 3), memory_format=torch.channels_last)
x = torch.randn(60); y = torch.randn(1, 3, 4, 5).to(memory_format=torch.channels_last); x.resize_as_(y, memory_format=torch.preserve_format).stride()
x = torch.arange(4.).view(2, 2); o = torch.empty(2); torch.diagonal_copy(x, out=o); o
x = torch.arange(4.); o = (torch.empty(2), torch.empty(2)); torch.split_copy(x, 2, out=o); o
torch.tensor_split(torch.arange(4.), torch.tensor(1.1))
torch.tensor_split(torch.arange(4.), torch.ones(2, 2, dtype=torch.int64))
x = torch.tensor([1 + 2j]).conj(); x.imag.is_neg(), x.imag.resolve_neg(), x.real.is_neg(), x.imag.is_conj(), x.imag.numpy(force=True)
torch.tensor([1 + 2j]).conj().imag.numpy()
torch.view_as_complex(torch.as_strided(torch.randn(3, 3), (2, 2), (1, 1)))
torch.view_as_complex(torch.randn(6)[1:5].view(2, 2))
torch.randn(2, 3, 4).H
"""
OVERLAPS = """
x = torch.arange(6.).view(2, 3); x[0] = x[0][1]; x
x = torch.arange(6.).view(2, 3); x[:] = x[0]; x
x = torch.arange(6.).view(2, 3); x.fill_(x[0][1]); x
x = torch.arange(6.).view(2, 3); x.copy_(x[0])
x = torch.arange(6.); x[1:] = x[:-1]
x = torch.arange(9.).view(3, 3); x.masked_fill_(x > 4, x[0, 1]); x
x = torch.arange(9.).view(3, 3); x.mul_(x[0, 1])
x = torch.arange(9.).view(3, 3); x[0] = x[:, 0]; x
"""
AUTOGRAD = """
x = torch.ones(2, requires_grad=True); x.register_post_accumulate_grad_hook(lambda p: 3); x.sum().backward()
x = torch.ones(2, requires_grad=True); x.register_post_accumulate_grad_hook(lambda p: p.grad); x.sum().backward()
x = torch.ones(2, requires_grad=True); x.register_post_accumulate_grad_hook(lambda p: p.sub_(p.grad)); x.sum().backward(); x, x.grad
x = torch.ones(2, requires_grad=True); x.register_post_accumulate_grad_hook(lambda p: torch.ones(3)); x.sum().backward()
x = torch.ones(2, requires_grad=True); log = []; hook = x.register_post_accumulate_grad_hook; hook(lambda p: p * 9); hook(lambda p: log.append(p)); x.sum().backward()
exec("with torch.inference_mode(): y = torch.ones(2)"); y._version
x = torch.ones(2, requires_grad=True); y = x * 2; y.grad
x = torch.ones(2, requires_grad=True); y = x * 2; y.retain_grad(); y.grad
torch.set_warn_always(True); x = torch.ones(2, requires_grad=True); (x * 2).sum().backward(create_graph=True); torch.set_warn_always(False)
x = torch.ones(2, requires_grad=True); torch.autograd.grad(x.sum(), [x, torch.ones(1, requires_grad=True)])
e = torch.tensor([0., 1., -1.], requires_grad=True); torch.pow(0., e).sum().backward(); e.grad
e = torch.tensor([2., 0., -1.], requires_grad=True); torch.pow(torch.zeros(3), e).sum().backward(); e.grad
x = torch.tensor([0., 2.], requires_grad=True); e = torch.tensor([0., 3.], requires_grad=True); torch.pow(x, e).sum().backward(); x.grad, e.grad
"""
PLACES = """
x = torch.ones(2, requires_grad=True); exec("with torch.inference_mode(): y = x.view(1, 2); z = x * 2; w = x[0]"); y.is_inference(), z.is_inference(), w.is_inference()
exec("with torch.inference_mode(): y = torch.ones(2)"); y.view(1, 2).is_inference(), (y * 2).is_inference(), y.clone().is_inference(), y.detach().is_inference()
x, a = torch.ones(2, 1, requires_grad=True); g = torch.autograd.grad(x * a, x, create_graph=True); torch.autograd.grad(g, x, create_graph=True, materialize_grads=True)
x = torch.ones(2, 2, requires_grad=True); torch.autograd.grad(x * 2, x, torch.ones(2), is_grads_batched=True)
x = torch.nn.Parameter(torch.ones(4)); exec("with torch.no_grad(): x.set_(x[1:])"); torch.cat((x, x)).sum().backward(); x, x.is_leaf, x.grad
x = torch.ones(4, requires_grad=True); x.set_(torch.ones(2))
w = torch.ones(3, requires_grad=True); h = w * 2; exec("with torch.no_grad(): h.set_(torch.zeros(3))"); h, torch.autograd.grad(h.sum(), w)
w = torch.ones(3, requires_grad=True); h = w * 2; h.set_(torch.zeros(3)); h.requires_grad, h.sum().backward()
w = torch.ones(3, requires_grad=True); h = torch.zeros(3); h.set_(w * 3); h.requires_grad, type(h.grad_fn).__name__
torch.tensor([torch.tensor([0, 1]), torch.tensor([1, 0])])
torch.tensor([1, torch.tensor([1, 2])])
torch.tensor([1., torch.tensor([1, 2])])
x = torch.ones(2, requires_grad=True); x.grad = torch.ones(3)
function(lambda ctx, x: (ctx.mark_dirty(x), x.mul_(2))[1])(torch.ones(2, requires_grad=True))
function(lambda ctx, x: (ctx.mark_dirty(x), x.mul_(2), x * 1)[2])(torch.ones(2, requires_grad=True) * 1)
function(lambda ctx, x: (ctx.mark_non_differentiable(x), x)[1])(torch.ones(2, requires_grad=True)).requires_grad
f = function(lambda ctx, x: (ctx.save_for_backward(x), x * 2)[1], lambda ctx, g: g * ctx.saved_variables[0]); f(torch.ones(2, requires_grad=True)).sum().backward()
function(lambda ctx, x: (ctx.save_for_backward(x, None, 3), x * 2)[1])(torch.ones(2, requires_grad=True))
f = function(lambda ctx, x: x * 1, lambda ctx, g: g.int()); x = torch.ones(2, requires_grad=True); f(x).sum().backward(); x.grad
f = function(lambda ctx, x: x * 1, lambda ctx, g: g.real); x = torch.ones(2, dtype=torch.cfloat, requires_grad=True); f(x).real.sum().backward(); x.grad
x = torch.tensor([1., 2.], requires_grad=True); y = torch.tensor([1., 3.], requires_grad=True); torch.autograd.grad(torch.nextafter(x, y).sum(), (x, y))
torch.set_grad_enabled(1)
torch.set_grad_enabled(torch.tensor(False))
f = torch.set_grad_enabled(mode=False)(lambda: torch.is_grad_enabled()); f(), torch.is_grad_enabled()
f = torch.no_grad()(type("Made", (), {"__init__": lambda self: setattr(self, "on", torch.is_grad_enabled())})); f().on
torch.autograd.set_multithreading_enabled(None)
torch.autograd.backward(["a"])
x = torch.ones(2, requires_grad=True); torch.autograd.grad([1], x)
x = torch.ones(2, requires_grad=True); torch.autograd.grad(x.sum(), [None])
x = torch.ones(2, requires_grad=True); x.sum().backward(inputs=["a"])
"""
HOOKS = """
x = torch.ones(2, requires_grad=True); h = x * 3; h.retain_grad(); o = (h * h).sum(); o.backward(retain_graph=True); o.backward(); h.grad
a = torch.tensor(1., requires_grad=True); b = a * 2; log = []; b.grad_fn.register_prehook(lambda g: log.append(1)); torch.autograd.grad(b * 2, b); log
a = torch.tensor(1., requires_grad=True); b = a * 2; log = []; b.register_hook(lambda g: log.append(1)); torch.autograd.grad(b * 2, (a, b)); log
a = torch.tensor(1., requires_grad=True); b = a * 2; b.grad_fn.register_prehook(lambda g: (g[0] * 2,)); b.retain_grad(); (b * 3).backward(); a.grad, b.grad
l = torch.nn.Linear(3, 4); y = torch.relu(l(torch.ones(2, 3))); n = y.grad_fn.next_functions[0][0].next_functions; n[0][0].variable is l.bias, n[1]
a = torch.tensor(1., requires_grad=True); b = a * 2; c = b.grad_fn.next_functions[0][0]; c.register_prehook(lambda g: (g[0] * 2,)); (b * 3).backward(inputs=[a]); a.grad
a = torch.tensor(1., requires_grad=True); log = []; a.register_post_accumulate_grad_hook(lambda t: log.append(t.grad)); (a * 3).backward(inputs=[a]); log
a = torch.tensor(1., requires_grad=True); b = a * 2; b.grad_fn.register_prehook(lambda g: (g[0] * 2,)); (b * 3).backward(inputs=[b]); b.grad
"""
HOOK_RESULTS = """
x = torch.ones(2, requires_grad=True); y = x * 2; y.grad_fn.register_hook(lambda gi, go: 3); y.sum().backward()
x = torch.ones(2, requires_grad=True); y = x * 2; y.grad_fn.register_hook(lambda gi, go: gi[0]); y.sum().backward()
x = torch.ones(2, requires_grad=True); y = x * 2; y.grad_fn.register_hook(lambda gi, go: (3, None)); y.sum().backward()
x = torch.ones(2, requires_grad=True); y = x * 2; y.grad_fn.register_hook(lambda gi, go: (torch.ones(3), None)); y.sum().backward()
x = torch.ones(2, requires_grad=True); y = x * 2; y.grad_fn.register_hook(lambda gi, go: (torch.ones(2).double(), None)); y.sum().backward()
x = torch.ones(2, requires_grad=True); y = x * 2; y.grad_fn.register_hook(lambda gi, go: (None, None)); y.sum().backward(); x.grad
x = torch.ones(2, requires_grad=True); y = x * 2; y.grad_fn.register_prehook(lambda go: (go[0], go[0])); y.sum().backward()
x = torch.ones(2, requires_grad=True); y = x * 2; y.grad_fn.register_prehook(lambda go: [go[0] * 2]); y.sum().backward()
x = torch.ones(2, requires_grad=True); y = x * 2; y.grad_fn.register_prehook(lambda go: (torch.ones(3),)); y.sum().backward()
x = torch.ones(2, requires_grad=True); y = x * 2; y.register_hook(lambda g: 3); y.sum().backward()
x = torch.ones(2, requires_grad=True); y = x * 2; y.register_hook(lambda g: torch.ones(2).double()); y.sum().backward()
"""
GRADIENT_DTYPES = """
x = torch.ones(2, requires_grad=True); a = x.grad_dtype; x.grad_dtype = torch.float64; b = x.grad_dtype; x.grad_dtype = None; a, b, x.grad_dtype, torch.ones(2).grad_dtype
x = torch.ones(2, requires_grad=True); x.grad_dtype = torch.float64; (x * 2).sum().backward(); (x * 3).sum().backward(); x.grad
x = torch.ones(2, requires_grad=True); x.grad_dtype = torch.bfloat16; torch.autograd.grad((x * 2).sum(), x)
x = torch.ones(2); x.grad_dtype = torch.float64; x.requires_grad_(); log = []; x.register_hook(lambda g: log.append(g.dtype)); (x * 2).sum().backward(); x.grad, log
x = torch.ones(2, requires_grad=True); x.grad_dtype = None; x.grad = torch.ones(2).double(); x.grad
x = torch.ones(2, requires_grad=True); x.grad = torch.ones(2).double()
x = torch.ones(2, requires_grad=True); x.grad_dtype = torch.bfloat16; x.grad = torch.ones(2, dtype=torch.int64)
x = torch.ones(2, requires_grad=True); x.sum().backward(); x.grad_dtype = torch.float32; x.grad_dtype = None; x.grad_dtype = torch.float64
x = torch.ones(2, requires_grad=True); x.grad_dtype = "float64"
x = torch.ones(2, requires_grad=True) * 2; x.grad_dtype
x = torch.ones(2, requires_grad=True) * 2; x.grad_dtype = torch.float64
import copy; x = torch.ones(2, requires_grad=True); x.grad_dtype = torch.float64; x.detach().grad_dtype, copy.deepcopy(x).grad_dtype
l = nn.Linear(2, 2); l.weight.grad_dtype = torch.float64; l.half(); l.weight.grad_dtype, l.bias.grad_dtype
"""
NO_TENSORS = """
import numpy as np; torch.relu(np.ones(2))
import numpy as np; torch.relu(np.float32(1))
torch.relu(torch.float32)
torch.relu(torch.Size([1]))
torch.relu(torch.Generator())
torch.relu([1.])
import numpy as np; torch.exp_(np.ones(2))
import numpy as np; torch.celu_(np.ones(2))
import numpy as np; torch.abs_(np.ones(2))
import numpy as np; torch.stack([np.ones(2)])
import numpy as np; torch.stack([torch.ones(2), np.ones(2)])
import numpy as np; torch.addcdiv(1.5, torch.ones(2), torch.ones(2))
import numpy as np; torch.addcmul(1.5, torch.ones(2), torch.ones(2))
import numpy as np; torch.cartesian_prod(np.ones(2))
import numpy as np; torch.chain_matmul(np.ones((2, 2)))
import numpy as np; torch.meshgrid(np.ones(2))
import numpy as np; torch.is_same_size(np.ones(2), torch.ones(2))
import numpy as np; torch.positive(np.ones(2))
import numpy as np; F.max_pool2d(np.ones((1, 2, 2)), 2)
import numpy as np; F.max_pool1d(np.ones((1, 2, 2)), 2)
import numpy as np; F.avg_pool1d(np.ones((1, 2, 2)), 2)
import numpy as np; F.adaptive_avg_pool1d(np.ones((1, 2, 2)), 2)
import numpy as np; F.dropout(np.ones(2))
import numpy as np; F.alpha_dropout(np.ones(2)), F.dropout(np.ones(2), training=False)
import numpy as np; F.one_hot(np.ones(2))
import numpy as np; F.rms_norm(np.ones(2), (2,))
import numpy as np; F.embedding(np.ones(2), torch.ones(2))
"""
APART = """
y = torch.arange(6.); i = torch.tensor([2, 1, 0]); y.index_add_(0, i, y[:3])
i = torch.tensor([2, 1, 0]); i.index_add_(0, i, i.clone())
i = torch.tensor([2, 1, 0]); i.index_copy_(0, i.clone(), i)
i = torch.tensor([2, 1, 0]); i.index_fill_(0, i, 0)
i = torch.tensor([2, 1, 0]); i.put_(i, i.clone())
i = torch.tensor([2, 1, 0]); i.index_put_((i,), i.clone())
s = torch.ones(3); i = torch.tensor([2, 1, 0]); s.scatter_(0, i, s)
s = torch.ones(3); i = torch.tensor([2, 1, 0]); s.scatter_add_(0, i, s)
y = torch.arange(6.); i = torch.tensor([2, 1, 0]); y[i] = y[:3]
y = torch.arange(6.); i = torch.tensor([2, 1, 0]); y[i] = y[3:]
i = torch.tensor([2, 1, 0]); i[i] = 5
y = torch.arange(6.); y[y > 2] = y[0]; y
y = torch.arange(6.); i = torch.tensor([2, 1, 0]); y[i] = y[i]; y
"""
STORAGES = """
t = torch.randn(1); t.set_(t.untyped_storage(), 0x41414141, t.size())
q = torch.ones(2); t = torch.ones(3); t.set_(q.untyped_storage(), 1, (2,)); t.shape, q.untyped_storage().nbytes()
import warnings; warnings.simplefilter("ignore"); t = torch.ones(2); t.set_(torch.ones(3).int().storage())
import warnings; warnings.simplefilter("ignore"); y = torch.arange(3.); t = torch.ones(2); t.new(y.storage()).data_ptr() == y.data_ptr()
import warnings; warnings.simplefilter("ignore"); t = torch.ones(2); t.new(torch.ones(3).int().storage())
x = torch.randn(5); a = x.untyped_storage().resizable(); x.numpy(); a, x.untyped_storage().resizable()
s = torch.tensor([1, 2], dtype=torch.int32).untyped_storage(); s.byteswap(torch.int32); s.tolist()
s = torch.tensor([1, 2], dtype=torch.int32).untyped_storage(); s.byteswap(torch.complex64); s.tolist()
torch.ones(5, 10).unflatten(1, (3, -1))
torch.zeros(3, 4).masked_select(torch.ones(5, 1, dtype=torch.bool))
torch.zeros(3, 4).masked_scatter(torch.ones(5, 1, dtype=torch.bool), torch.ones(9))
torch.set_warn_always(True); float(torch.tensor(2., requires_grad=True)); torch.set_warn_always(False)
i = torch.ones(1, 1, 2, 2); g = torch.zeros(1, 2, 2, 2); torch.grid_sampler_2d(i, g, 0, 0, False)
torch.grid_sampler_3d(torch.ones(1, 1, 2, 2, 2), torch.zeros(1, 2, 2, 2, 3), 0, 1, True)
torch.grid_sampler_3d(torch.ones(1, 1, 2, 2), torch.zeros(1, 2, 2, 2), 0, 1, True)
torch.grid_sampler_2d(torch.ones(1, 1, 2, 2, 2), torch.zeros(1, 2, 2, 2, 3), 0, 1, True)
torch.Tensor.__rdiv__(torch.tensor(2.), 1), torch.Tensor.__div__(torch.tensor(2.), 1)
"""
PARTS = """
torch.maximum(torch.ones(2) + 0j, torch.ones(2))
torch.fmin(torch.ones(2) + 0j, torch.ones(2) + 0j)
torch.max(torch.ones(2) + 0j, torch.ones(2))
torch.complex(torch.tensor(1.), torch.tensor(float("inf"))), torch.view_as_complex(torch.tensor([123., float("inf")]))
torch.polar(torch.tensor([float("inf"), 2.]), torch.tensor([0., 1.]))
torch.nan_to_num(torch.view_as_complex(torch.tensor([[123., float("inf")], [float("nan"), 456.]])), nan=21, posinf=12)
x = torch.zeros(2, dtype=torch.complex64); x.imag = torch.tensor([float("inf"), 1.]); x.real[1] = float("inf"); x
x = torch.ones(2, dtype=torch.complex128, requires_grad=True); (torch.view_as_real(x) * torch.tensor([float("inf"), 2.])).sum().backward(); x.grad
"""
POOLS = """
F.avg_pool2d(torch.arange(36.).view(1, 6, 6).bfloat16() / 7, 3, 2), F.avg_pool1d(torch.arange(60.).view(1, 60).half() / 7, 30, 7)
F.avg_pool2d(torch.arange(36.).view(1, 6, 6).bfloat16() / 7, 3, 2, 1, count_include_pad=False)
F.avg_pool3d(torch.ones(1, 2, 2, 2).half(), 2)
exec("with torch.autocast('cpu', torch.bfloat16): y = F.avg_pool3d(torch.ones(1, 2, 2, 2).bfloat16(), 2)"); y.dtype
nn.AdaptiveMaxPool2d((0, 1))(torch.ones(1, 1, 2, 2)).shape
nn.AdaptiveMaxPool2d((0, 1), return_indices=True)(torch.ones(1, 1, 2, 2))
nn.AdaptiveMaxPool3d((1, 0, 1))(torch.ones(1, 1, 2, 2, 2)).shape
nn.AdaptiveAvgPool2d(2)(torch.ones(1, 0, 2, 2)).shape, nn.AdaptiveAvgPool1d(2)(torch.ones(1, 0, 2)).shape
nn.AdaptiveAvgPool3d(2)(torch.ones(1, 0, 2, 2, 2)).shape
nn.AdaptiveMaxPool1d(2)(torch.ones(1, 0, 2)).shape
nn.AdaptiveMaxPool2d(-1)(torch.ones(1, 1, 2, 2)).shape
nn.functional.grad.conv2d_input((1, 1, 3, 3), torch.ones(1, 1, 2, 2), torch.ones(1, 1, 2, 2))
"""
MIXED = """
nn.Linear(3, 4)(torch.randn(2, 3, dtype=torch.float64))
nn.Linear(3, 4)(torch.randn(2, 3).half())
nn.Linear(3, 4, bias=False)(torch.randn(2, 2, 3, dtype=torch.float64))
nn.Conv2d(1, 1, 1)(torch.ones(1, 1, 2, 2, dtype=torch.float64))
nn.Conv2d(1, 1, 1, bias=False)(torch.ones(1, 1, 2, 2, dtype=torch.int64))
nn.ConvTranspose2d(1, 1, 1)(torch.ones(1, 1, 2, 2, dtype=torch.float64))
nn.BatchNorm1d(2)(torch.ones(3, 2, dtype=torch.float64))
nn.BatchNorm1d(2).eval()(torch.ones(3, 2, dtype=torch.float64))
nn.BatchNorm1d(2)(torch.ones(3, 2).half()).dtype
nn.BatchNorm2d(2).half()(torch.ones(3, 2, 2, 2))
nn.BatchNorm2d(2)(torch.ones(3, 2, 2, 2, dtype=torch.int64))
nn.InstanceNorm1d(2, affine=True)(torch.ones(3, 2, 2, dtype=torch.float64))
nn.Bilinear(2, 2, 2)(torch.ones(1, 2), torch.ones(1, 2, dtype=torch.float64))
torch.addmm(torch.ones(2, 2, dtype=torch.float64), torch.ones(2, 2), torch.ones(2, 2))
torch.addmm(torch.ones(2, 2), torch.ones(2, 2, dtype=torch.float64), torch.ones(2, 2))
torch.addmv(torch.ones(2, dtype=torch.float64), torch.ones(2, 2), torch.ones(2))
torch.mv(torch.ones(2, 2, dtype=torch.float64), torch.ones(2))
torch.bmm(torch.ones(2, 2, 2), torch.ones(2, 2, 2, dtype=torch.float64))
torch.baddbmm(torch.ones(2, 2, 2, dtype=torch.float64), torch.ones(2, 2, 2), torch.ones(2, 2, 2))
torch.addbmm(torch.ones(2, 2), torch.ones(2, 2, 2), torch.ones(2, 2, 2, dtype=torch.float64))
torch.ones(2) @ torch.ones(2, dtype=torch.float64)
torch.ones(2, 2, 2) @ torch.ones(2, dtype=torch.float64)
torch.einsum("ij,jk->ik", torch.ones(2, 2), torch.ones(2, 2, dtype=torch.float64))
torch.einsum("...n,d->...nd", torch.arange(6.).view(2, 3), torch.arange(4.).double())
torch.einsum("ij,j->ij", torch.arange(6.).view(2, 3), torch.arange(3))
torch.einsum("ij,jk->ik", torch.ones(2, 1), torch.full((1, 3), 0.1, dtype=torch.float64))
torch.einsum("ij,jk->i", torch.arange(2).view(2, 1), torch.full((1, 3), 1.5))
torch.tensordot(torch.ones(2, 2), torch.ones(2, 2, dtype=torch.float64), 1)
"""
FACTORIES = """
torch.arange(0, 2, .5, dtype=torch.int64)
torch.arange(0, 0, .5, dtype=torch.int64)
torch.arange(0, -2, -.5, dtype=torch.int32), torch.arange(0, 2.5, 1.7, dtype=torch.int64)
torch.finfo(float), torch.finfo(complex), torch.iinfo(int), torch.finfo()
torch.finfo(int)
torch.finfo(torch.int32)
torch.finfo(None)
torch.finfo("float32")
torch.iinfo(float)
torch.iinfo(torch.float16)
torch.iinfo(bool)
torch.iinfo(object)
torch.zeros(2, 3, layout=torch.sparse_coo)
torch.zeros_like(torch.ones(2), layout=torch.sparse_coo)
torch.ones(2, 3, layout=torch.sparse_coo)
torch.full((2,), 1., layout=torch.sparse_coo)
torch.randperm(-1)
torch.cumsum(torch.ones(3), 0, dtype=torch.bool)
F.pad(torch.ones(2, dtype=torch.int8), (1, 1), value=300)
torch.full((2,), 1e5, dtype=torch.float16)
torch.full_like(torch.ones(2).half(), 1e10)
torch.ones(2).half().fill_(1e10)
torch.tensor(1e10, dtype=torch.float16), torch.tensor([1e39])
"""
NUMBERS = """
class A: pass; x = torch.ones(2); x += A()
x = torch.ones(2); A = type("A", (), {"__radd__": lambda self, other: "radd"}); x += A(); x
x = torch.ones(2, dtype=torch.int64); A = type("A", (), {"__rand__": lambda self, other: "rand"}); x &= A(); x
x = torch.ones(2); x *= [1, 2]
torch.logaddexp(torch.tensor([1, 2]), torch.tensor([3, 4]))
torch.logaddexp2(torch.tensor([True]), torch.tensor([True]))
torch.logaddexp(torch.tensor([1, 2]), torch.tensor([3., 4]))
torch.log1p(torch.tensor([1e-20+1e-20j, 1e20+1e20j, 1e-8+1j, -1+1e-8j, 1e300+0j], dtype=torch.complex128))
torch.log1p(torch.tensor([1e-10+1e-10j, 1e20+1e20j, 1e38+1e38j, -1+1e-8j, complex("-inf"), -1+0j, complex(0, -0.0)]))
torch.add(3j, 2), torch.mul(2, 2j)
torch.pow(torch.tensor([3], dtype=torch.uint8), 255)
torch.pow(torch.tensor([3], dtype=torch.int8), 128)
torch.tensor([3], dtype=torch.uint8) ** 300
torch.pow(torch.tensor([1.]).half(), 65519)
torch.pow(torch.tensor([True]), torch.tensor([False]))
torch.tensor([True]) ** False, torch.tensor([True]) ** 2, torch.tensor([True]) ** torch.tensor([1])
True ** torch.tensor([True])
t = torch.ones(2); torch.float_power(torch.ones(2), 2, out=t)
t = torch.ones(2, dtype=torch.float64); torch.float_power(torch.ones(2), 2, out=t)
torch.remainder(torch.arange(0), 0), torch.arange(0) // torch.tensor([0])
torch.cumulative_trapezoid(torch.ones(0, 2), dim=0)
torch.cumulative_trapezoid(torch.tensor(1.))
torch.trapezoid(torch.ones(2) > 0)
torch.trapezoid(torch.ones(2), dx=2j)
torch.div(torch.tensor([-11.5, 3.21875]).bfloat16(), torch.tensor([0.349609375, 0.1240234375]).bfloat16(), rounding_mode="trunc")
torch.div(torch.tensor([-11.5, 3.21875]).bfloat16(), 0.349609375, rounding_mode="trunc")
"""
FACTORS = """
torch.addr(torch.ones(2, 2), torch.ones(2), torch.ones(2), alpha=1j)
torch.addr(torch.ones(2, 2, dtype=torch.int64), torch.arange(2), torch.arange(2), beta=1.5)
torch.addmm(torch.ones(2, 2), torch.ones(2, 2), torch.ones(2, 2), alpha=1j)
torch.addmm(torch.ones(2, 2), torch.ones(2, 2), torch.ones(2, 2) * 2, beta=1 + 0j)
torch.baddbmm(torch.ones(2, 2, 2), torch.ones(2, 2, 2), torch.ones(2, 2, 2), beta=1j)
torch.linalg.vector_norm(torch.ones(2), 1j)
torch.linalg.matrix_norm(torch.ones(2, 2), 1j)
torch.linalg.vector_norm(torch.ones(2), "a")
torch.linalg.vector_norm(torch.ones(0, 2), -1)
torch.linalg.vector_norm(torch.ones(0, 2), float("inf"), dim=0)
torch.linalg.vector_norm(torch.ones(0, 2), float("inf"), dim=1)
torch.linalg.vector_norm(torch.ones(2, 0), float("-inf"), dim=())
"""
NUMPY_NUMBERS = """
import numpy as np; torch.as_tensor([np.float64(1), np.float64(2)])
import numpy as np; torch.tensor([1, np.float64(2)]), torch.tensor([[np.float64(1)], [np.float64(2)]])
import numpy as np; torch.tensor([np.int8(1), 2.5]), torch.tensor([np.int32(1), 2]), torch.tensor([np.float64(1), 2j])
import numpy as np; torch.tensor([np.float64(3)], dtype=torch.int32)
import numpy as np; torch.tensor([torch.tensor(1., dtype=torch.float64), 2]), torch.tensor([2., torch.tensor(1, dtype=torch.int8)])
import numpy as np; torch.Tensor([np.float64(1)]), torch.LongTensor([np.int8(1)])
import numpy as np; a = torch.zeros(3); a[0] = np.int8(2); a[1:] = np.int64(3); a
import numpy as np; torch.result_type(torch.ones(1), np.float32(2)), torch.add(torch.ones(2), torch.ones(2), alpha=np.float32(2))
"""
# What only can be made a float is no number to torch: such objects' own operators get the Tensor.
OTHERS_OPERATORS = """
Own = type("Own", (), {"__radd__": lambda s, o: "own", "__gt__": lambda s, o: "own", "__float__": lambda s: 2.0}); a = torch.ones(2); a + Own(), a < Own(), a == Own()
import sympy; x, a = sympy.Symbol("x"), torch.nn.Parameter(torch.tensor(1.5)); a * x + 2, a.detach() - x, x / a, a // x, a < x, sympy.sin(a * x)
import sympy; torch.tensor(1.5) * sympy.Integer(2), torch.tensor(1.5) * sympy.pi
from fractions import Fraction; torch.ones(2) + Fraction(1, 2)
from fractions import Fraction; Fraction(1, 2) * torch.ones(2)
from fractions import Fraction; torch.tensor(Fraction(1, 3))
from fractions import Fraction; torch.add(torch.ones(2), Fraction(1, 2))
"""
# What torch does not compute.
NOT_IMPLEMENTED = """
torch.tensor([1j]).round()
torch.tensor([1j]).round(decimals=1)
torch.tensor([1.25, 12.]).round(decimals=1), torch.tensor([1, 25]).round()
torch.tensor([1, 25]).round(decimals=-1)
torch.tensor([True]).round()
torch.tensor([1j]).cummax(0)
torch.tensor([1j]).logit()
"""
# Weights that a library hands to a recurrent layer; they count until a parameter is another one.
FLAT_WEIGHTS = """
torch.manual_seed(0); m = nn.GRU(2, 3); x = torch.ones(4, 2); m._flat_weights = [w.detach() * 0 for w in m._flat_weights]; m(x)[1]
torch.manual_seed(0); m = nn.LSTM(2, 3); x = torch.ones(4, 2); m._flat_weights = [w * 2 for w in m._flat_weights]; m(x)[0].sum().backward(); m.weight_ih_l0.grad
torch.manual_seed(0); m = nn.RNN(2, 3); x = torch.ones(4, 2); m._flat_weights = [w * 0 for w in m._flat_weights]; m.weight_hh_l0 = nn.Parameter(torch.ones(3, 3)); m(x)[1]
torch.manual_seed(0); m = nn.RNN(2, 3); m._flat_weights = [m._parameters[n] for n in m._flat_weights_names]; len(m._flat_weights), sorted(m.state_dict()), m(torch.ones(4, 2))[1]
"""
OUTS = """
t = torch.zeros(2, 2); torch.arange(4, out=t)
t = torch.zeros(2, 2).t(); torch.arange(4, out=t).stride(), t
t = torch.zeros(2, 2); torch.linspace(0, 3, 4, out=t)
t = torch.tensor([1., 2]); torch.arange(4, out=t)
t = torch.tensor([1., 2]); torch.zeros(4, out=t)
t = torch.tensor([1., 2]); torch.full((4,), 2., out=t)
t = torch.tensor([1., 2]); torch.logspace(0, 1, 4, out=t)
t = torch.tensor([1., 2, 3]); torch.range(0, 1, out=t)
t = torch.tensor([1., 2]); torch.eye(2, out=t)
t = torch.tensor([1, 2]); torch.randint(4, (3,), out=t).shape
t = torch.tensor([1., 2]); torch.randn(4, out=t).shape
t = torch.tensor([1., 2]); torch.bernoulli(torch.zeros(3), out=t)
t = torch.zeros(2); torch.arange(4, out=t, dtype=torch.int64)
t = torch.zeros(2); torch.ones(4, out=t, dtype=torch.int64)
t = torch.zeros(2); torch.randn(4, out=t, dtype=torch.float64)
t = torch.tensor(1.); torch.fft.fftfreq(4, out=t)
t = torch.zeros(2, 2); torch.fft.rfftfreq(6, out=t)
t = torch.zeros(2); torch.fft.fft2(torch.ones(3, 3), out=t)
t = torch.zeros(2) + 0j; torch.fft.irfftn(torch.ones(3), out=t)
t = torch.zeros(2, dtype=torch.int64); torch.fft.irfft(torch.ones(3), out=t)
"""
OUT_DTYPES = """
torch.mm(torch.ones(2, 2), torch.ones(2, 2), out=torch.zeros(2, 2, dtype=torch.float64))
torch.bmm(torch.ones(1, 2, 2), torch.ones(1, 2, 2), out=torch.zeros(1, 2, 2).half())
torch.dot(torch.ones(2), torch.ones(2), out=torch.zeros((), dtype=torch.int64))
torch.abs(torch.ones(2), out=torch.zeros(2, dtype=torch.float64))
torch.add(torch.ones(2), torch.ones(2), out=torch.zeros(2, dtype=torch.float64))
torch.add(torch.ones(2), torch.ones(2), out=torch.zeros(2, dtype=torch.int64))
torch.floor(torch.arange(3), out=torch.zeros(3))
torch.sum(torch.ones(2, 2) * 1.6, 0, out=torch.zeros(2, dtype=torch.int64))
torch.sum(torch.ones(2, 2), out=torch.zeros(()))
torch.prod(torch.ones(2, 2) * 2.5, 0, out=torch.zeros(2, dtype=torch.int64))
torch.cumsum(torch.ones(3) * 1.5, 0, out=torch.zeros(3, dtype=torch.int64))
torch.mean(torch.ones(3), 0, out=torch.zeros((), dtype=torch.float64))
torch.any(torch.ones(3), 0, out=torch.zeros(()))
torch.any(torch.ones(3), 0, out=torch.zeros((), dtype=torch.uint8))
torch.max(torch.ones(3), 0, out=(torch.zeros(()), torch.zeros((), dtype=torch.int64)))
torch.max(torch.ones(3), 0, out=(torch.zeros(()), torch.zeros(())))
torch.max(torch.ones(3), out=torch.zeros((), dtype=torch.int64))
torch.max(torch.ones(3), torch.zeros(3), out=torch.zeros(3, dtype=torch.float64))
torch.sort(torch.ones(3), out=(torch.zeros(3), torch.zeros(3)))
torch.sort(torch.arange(3.), descending=True, out=(torch.zeros(3), torch.zeros(3, dtype=torch.int64)))
torch.topk(torch.arange(3.), 2, out=(torch.zeros(2).double(), torch.zeros(2, dtype=torch.int64)))
torch.kthvalue(torch.arange(3.), 2, out=(torch.zeros(()), torch.zeros(())))
torch.median(torch.arange(3.), 0, out=(torch.zeros(()), torch.zeros(())))
torch.mode(torch.arange(3.), out=(torch.zeros(()).double(), torch.zeros((), dtype=torch.int64)))
torch.cummax(torch.arange(3.), 0, out=(torch.zeros(3), torch.zeros(3, dtype=torch.int64)))
torch.aminmax(torch.arange(3.), out=(torch.zeros(()), torch.zeros(()).double()))
torch.histogram(torch.ones(3), 2, out=(torch.zeros(2), torch.zeros(3)))
torch.gather(torch.ones(3), 0, torch.tensor([0]), out=torch.zeros(1).double())
torch.masked_select(torch.ones(3), torch.ones(3) > 0, out=torch.zeros(3).double())
torch.index_select(torch.ones(3), 0, torch.tensor([0]), out=torch.zeros(1).double())
torch.where(torch.ones(2) > 0, torch.ones(2), torch.ones(2), out=torch.zeros(2).double())
torch.cat([torch.ones(2)], out=torch.zeros(2, dtype=torch.int64))
torch.stack([torch.ones(2)], out=torch.zeros(1, 2).double())
torch.isnan(torch.ones(2), out=torch.zeros(2, dtype=torch.bool))
torch.select_scatter(torch.ones(2), torch.tensor(1.), 0, 0, out=torch.zeros(2))
torch.signbit(torch.ones(2), out=torch.zeros(2))
torch.float_power(torch.ones(2), 2, out=torch.zeros(2))
torch.complex(torch.ones(2), torch.ones(2), out=torch.zeros(2))
torch.quantile(torch.ones(2), 0.5, out=torch.zeros(()).double())
torch.searchsorted(torch.arange(3.), torch.ones(1), out=torch.zeros(1))
torch.softmax(torch.ones(2), 0, out=torch.zeros(2).double())
torch.linalg.det(torch.eye(2), out=torch.zeros(()).double())
torch.linalg.qr(torch.eye(2), out=(torch.zeros(2, 2), torch.zeros(2, 2).double()))
torch.linalg.eigvalsh(torch.eye(2), out=torch.zeros(2).double())
torch.linalg.lstsq(torch.eye(2), torch.ones(2, 1), out=(torch.zeros(2, 1), torch.zeros(0), torch.zeros((), dtype=torch.int64), torch.zeros(0)))
torch.linalg.norm(torch.ones(2), out=torch.zeros(()).double())
torch.linalg.pinv(torch.eye(2), out=torch.zeros(2, 2).double())
torch.unbind_copy(torch.ones(2), out=(torch.zeros(()), torch.zeros(())))
torch.mul(torch.ones(2), 2, out=torch.zeros(2, requires_grad=True))
[n for n in dir(torch.return_types) if n.endswith("_out") and n[0] != "_"]
"""
FOURIER = """
torch.fft.rfft2(torch.ones(4, 4) + 0j)
torch.fft.ihfftn(torch.ones(4, 4) + 0j)
torch.fft.fft(torch.ones(2), n=-1)
torch.fft.fft2(torch.ones(2, 2), s=(-1, 2))
torch.fft.fft(torch.ones(2), norm=1)
torch.fft.fft2(torch.ones(2, 2, 2), dim=None)
torch.fft.fftshift(torch.arange(4), dim=2)
torch.fft.ifftshift(torch.tensor(3))
torch.fft.ifftshift(torch.tensor(3), dim=0)
torch.roll(torch.arange(4), (), ())
torch.fft.fftfreq(0), torch.fft.rfftfreq(0), torch.fft.rfftfreq(-1)
torch.fft.fftfreq(-2)
torch.fft.rfftfreq(-5)
torch.fft.fftfreq(4, 0.)
torch.fft.fftfreq(4, 2, dtype=torch.int64)
torch.fft.fftfreq(3, 2j)
torch.set_warn_always(True); torch.stft(torch.ones(64), 16, return_complex=True).shape
torch.set_warn_always(True); torch.stft(torch.ones(64), 16, return_complex=False, window=torch.hann_window(16)).shape
torch.set_warn_always(True); torch.istft(torch.ones(9, 17) + 0j, 16).shape
torch.set_warn_always(False); torch.stft(torch.ones(64), 128, return_complex=True, center=False, window=torch.ones(128))
torch.stft(torch.ones(64), 16, 0, return_complex=True, window=torch.ones(16))
torch.stft(torch.ones(64), 16, window=torch.ones(17), return_complex=True)
torch.stft(torch.ones(64, dtype=torch.int64), 16, return_complex=True, window=torch.ones(16))
torch.stft(torch.ones(64), 16, window=torch.ones(16), return_complex=True, align_to_window=True)
torch.stft(torch.arange(64.), 16, win_length=8, window=torch.ones(8), return_complex=True, align_to_window=True, center=False)[:2]
torch.istft(torch.ones(9, 17) + 0j, 16, window=torch.ones(17))
torch.istft(torch.ones(9, 17) + 0j, 16, window=torch.ones(16) * 0)
torch.istft(torch.ones(9, 0) + 0j, 16, window=torch.ones(16))
torch.istft(torch.ones(8, 17) + 0j, 16, window=torch.ones(16), onesided=False)
torch.istft(torch.ones(9, 17) + 0j, 16, 17, window=torch.ones(16))
torch.istft(torch.ones(9, 17) + 0j, 16, window=torch.ones(16) + 0j)
torch.istft(torch.ones(9, 17) + 0j, 16, window=torch.ones(16), return_complex=True)
torch.istft(torch.ones(9, 17) + 0j, 16, window=torch.ones(16), length=100)
"""
SIZES = """
torch.linspace(0, 1, 2**62)
torch.logspace(0, 1, 2**62)
torch.eye(2**40)
torch.arange(0, 1e30)
torch.ones(1).expand(2**60).shape, torch.ones(1).expand(2**60)[3]
torch.ones(1).expand(2**40, 2**40)
torch.ones(1).expand(2**50)
torch.ones(1).expand(2**36).view(2, -1)[:, 5:7]
torch.ones(1).repeat(2**62)
torch.ones(2).repeat_interleave(2**61)
torch.empty_strided([2, 2**62], [1, 2**62])
torch.empty_strided([8, 8], [2**61, 1], dtype=torch.float64)
F.one_hot(torch.tensor([1]), 2**61)
"""
BUFFERS = """
a = bytearray(8); t = torch.frombuffer(a, dtype=torch.uint8); t.sum(); a[0] = 3; t.sum()
a = bytearray(8); t = torch.frombuffer(a, dtype=torch.uint8); t[0] = 4; t.sum(); list(a)
a = bytearray(8); t = torch.frombuffer(memoryview(a)[4:], dtype=torch.uint8); t.sum(); a[4] = 4; t
import array; a = array.array("i", [1, 2, 3]); t = torch.frombuffer(a, dtype=torch.int32); t.sum(); a[0] = 5; t, t.numpy()
import numpy as np; a = memoryview(np.arange(3.)); t = torch.frombuffer(a, dtype=torch.float64); t.sum(); a[1] = 5.; t
import mmap; m = mmap.mmap(-1, 16); t = torch.frombuffer(m, dtype=torch.float32); t[1] = 2; m[4:8]
import numpy as np; a = bytearray(8); t = torch.frombuffer(a, dtype=torch.float64); t.sum(); t.data_ptr() == np.frombuffer(a).ctypes.data
torch.set_warn_always(True); import numpy as np; a = np.ones(3); a.flags.writeable = False; torch.from_numpy(a), torch.set_warn_always(False)
torch.set_warn_always(True); torch.frombuffer(bytes(8), dtype=torch.uint8), torch.set_warn_always(False)
torch.set_warn_always(True); import numpy as np; a = np.ones(3); a.flags.writeable = False; torch.tensor(a), torch.set_warn_always(False)
"""
MADE = """
z = []; z.append(z); torch.tensor(z)
z = [0]; z += [z]; torch.tensor(z)
z = [0]; z += [z]; torch.tensor([[1, 2], z])
torch.block_diag()
torch.cat([torch.empty(0), torch.empty(0)], dim=1)
torch.cat([torch.empty(0), torch.ones(2, 3)], dim=2)
torch.linspace(1j, 2, 3, dtype=torch.float32)
torch.logspace(1j, 2, 3, dtype=torch.int32)
torch.linspace(torch.tensor(1j), 2, 3, dtype=torch.float32)
torch.meshgrid([], indexing="ij")
torch.repeat_interleave(torch.arange(4).reshape(2, 2))
torch.zeros((2, 3), device="meta", out=torch.tensor(1.))
torch.zeros((2, 3), layout=torch.sparse_coo, out=torch.tensor(1.))
torch.arange(3, layout=torch.sparse_csr)
torch.Storage, torch.Storage is torch.FloatStorage
"""
REDUCED = """
torch.all(torch.tensor([[1., 0.]]), dim=[]), torch.any(torch.tensor([[1., 0.]]), dim=())
torch.all(torch.tensor([[1., 0.]]), dim=[], keepdim=True), torch.ones(2, 3).all(()).shape, torch.sum(torch.ones(2, 3), dim=[])
torch.cumsum(torch.ones(3, dtype=torch.int32), 0, dtype=torch.int64, out=torch.empty(3, dtype=torch.int32))
torch.sum(torch.ones(3), 0, dtype=torch.float64, out=torch.empty(()))
torch.mean(torch.ones(3), 0, dtype=torch.float64, out=torch.empty(()))
torch.nansum(torch.ones(3), 0, dtype=torch.float64, out=torch.empty(()))
torch.nanmean(torch.ones(2), 0, dtype=torch.int64)
i = float("inf"); torch.logcumsumexp(torch.tensor([-i + 4j, -i + 1j, 1.2 + 2.1j, 1e10 + 1e20j, i + 0j, i + 1j, i + 3j, float("nan") + 2j]), 0)
i = float("inf"); torch.logaddexp(torch.tensor([-i + 1j, -i + 0j, i + 1j, 1 + 1j]), torch.tensor([-i + 2j, i + 1j, -i + 1j, 1 + 2j]))
torch.hash_tensor(torch.arange(6.).view(2, 3), dim=1), torch.hash_tensor(torch.arange(6, dtype=torch.int8) - 4), torch.tensor([True, False]).hash_tensor()
torch.hash_tensor(torch.arange(12.).view(2, 3, 2), dim=(0, 2), keepdim=True), torch.hash_tensor(torch.arange(6, dtype=torch.float16))
torch.hash_tensor(torch.ones(0))
torch.hash_tensor(torch.ones(2, 0), dim=1)
torch.hash_tensor(torch.ones(2), mode=1)
torch.hash_tensor(torch.ones(2) + 0j)
torch.histogram(torch.ones(3), torch.ones(2).double())
torch.histogramdd(torch.ones(3, 2), [torch.ones(2).double(), torch.ones(2).double()])
torch.ones(2, requires_grad=True).round(decimals=1).grad_fn.name(), torch.ones(2, requires_grad=True).round().grad_fn.name()
"""
PRODUCT_OUTS = """
torch.matmul(torch.ones(2), torch.ones(2), out=torch.ones((), dtype=torch.float64))
torch.matmul(torch.ones(2, 2), torch.ones(2), out=torch.ones(2, dtype=torch.float64))
torch.matmul(torch.ones(2), torch.ones(2, 2), out=torch.ones(2, dtype=torch.float64))
torch.matmul(torch.ones(3, 2, 2), torch.ones(2, 2), out=torch.ones(3, 2, 2, dtype=torch.int64))
torch.matmul(input=torch.ones(2, 2), other=torch.ones(2, 2), out=torch.ones(3, 2))
torch.abs(torch.ones(2) + 1j, out=torch.ones(2, dtype=torch.float64)), torch.abs(torch.ones(2) + 1j, out=torch.ones(2) + 0j)
torch.abs(torch.ones(2) + 1j, out=torch.ones(2, dtype=torch.int64))
torch.inner(torch.ones(2), torch.tensor(2.), out=torch.ones(2, dtype=torch.float64))
torch.inner(torch.ones(2), torch.ones(2), out=torch.ones((), dtype=torch.float64))
torch.linalg.tensorinv(torch.eye(4).view(4, 2, 2), ind=1, out=torch.ones(2, 2, 4, dtype=torch.float64)).dtype
torch.linalg.tensorsolve(torch.eye(4).view(4, 2, 2), torch.ones(4), out=torch.ones(2, 2, dtype=torch.int64))
"""
FLOAT_SIZES = """
torch.empty((2., 3))
torch.zeros(2., 3)
torch.ones((2, 3.))
torch.zeros(2.)
torch.zeros('a')
torch.zeros((None, 2))
torch.zeros([[2]])
torch.zeros(torch.ones(2))
torch.full((2., 3), 1)
torch.full((2, 2.), 1)
torch.rand((2, 3, 4.))
torch.randn(2.)
torch.randn([2, [3]])
nn.Linear(4 / 2, 3)
nn.Linear(3, 4 / 2)
nn.Embedding(4 / 2, 3)
"""
NOT_FINITE = """
x = torch.full((3, 3), float("nan")); torch.linalg.svd(x)
x = torch.stack([torch.eye(3), torch.eye(3), torch.eye(3) * float("inf")]); torch.linalg.svdvals(x)
x = torch.stack([torch.eye(3), torch.full((3, 3), float("nan"))]).double(); torch.linalg.eigh(x)
x = torch.full((5, 5), float("nan")) + 0j; torch.linalg.eigvalsh(x)
x = torch.full((2, 2), float("nan")); torch.linalg.eigvalsh(x)
x = torch.stack([torch.eye(2), torch.full((2, 2), float("inf"))]); torch.linalg.eig(x)
x = torch.full((3, 4), float("nan")); torch.linalg.pinv(x)
x = torch.full((3, 3), float("nan")); torch.linalg.pinv(x, hermitian=True)
x = torch.full((2, 3, 3), float("nan")); torch.linalg.matrix_rank(x)
x = torch.full((3, 3), float("nan")); torch.linalg.matrix_rank(x, hermitian=True)
x = torch.full((3, 3), float("nan")); torch.linalg.matrix_norm(x, "nuc")
x = torch.full((3, 3), float("nan")); torch.linalg.matrix_norm(x, 2)
x = torch.full((3, 3), float("nan")); torch.linalg.cond(x)
x = torch.full((3, 3), float("nan")); torch.svd(x, compute_uv=False)
x = torch.full((3, 3), float("nan"), requires_grad=True); torch.linalg.svdvals(x.tanh()).sum().backward()
torch.cuda._initialized == torch.cuda.is_initialized()
"""
COPIES = """
from copy import copy; x = torch.tensor([1, 2]); y = copy(x); y.fill_(1); x
from copy import copy; x = torch.ones(2, requires_grad=True); y = copy(x); y.is_leaf, y.requires_grad, y.data_ptr() == x.data_ptr(), y is x
from copy import copy; x = torch.ones(2, requires_grad=True) * 2; y = copy(x); y.is_leaf, y.requires_grad, y.data_ptr() == x.data_ptr()
from copy import copy; x = nn.Parameter(torch.ones(2)); y = copy(x); y.data.fill_(5), x, type(y).__name__, y.requires_grad
from copy import copy; x = torch.ones(2, 3).t()[1:]; x.hello = 3; y = copy(x); y.stride(), y.hello, y.storage_offset(), y._is_view()
from copy import copy; x = torch.ones(2, 3).to_sparse(); y = copy(x); y.values().data_ptr() == x._values().data_ptr()
from copy import deepcopy; a = torch.ones(2); w = deepcopy([a, a.untyped_storage()]); w[0].add_(1); w[1].tolist()
from copy import deepcopy; a = torch.ones(2); w = deepcopy([a, a[1:]]); w[0].add_(1); w[1], w[1]._is_view(), w[1].storage_offset(), a
from copy import deepcopy; a = torch.arange(6.).view(2, 3)[:, 1]; w = deepcopy(a); w.stride(), w.storage_offset(), w, w.untyped_storage().nbytes()
from copy import deepcopy; a = torch.arange(6.); b = a.view(torch.int32); w = deepcopy([b, a]); w[0].zero_(); w[1], a
from copy import deepcopy; a = torch.arange(6.); b = a.view(2, 3).t(); a.add_(1); w = deepcopy([b, a]); w[0].mul_(2); w[1], a, w[0]
from copy import deepcopy; a = torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last); w = deepcopy([a[0], a]); w[1].stride(), w[0].stride()
from copy import deepcopy; a = torch.ones(3, 1).expand(3, 2); w = deepcopy(a); w.stride(), w.untyped_storage().nbytes()
from copy import deepcopy; a = torch.ones(3, requires_grad=True); a.detach().add_(1); (a * 2).sum().backward(); w = deepcopy(a); w.data.zero_(); w, w.grad, a
from copy import deepcopy; a = torch.ones(2).numpy(); t = torch.from_numpy(a); u = deepcopy(t); a[0] = 5; t, u
"""
GRADIENTS = """
i = float("inf"); n = float("nan"); torch.gradient(torch.tensor([2, -2, i, i, -i, -i, i, 3, -i, 2, n, n, 3, i, n]))
torch.gradient(torch.tensor([1., 2, 4]), spacing=2j), torch.gradient(torch.tensor([1, 2, 4]), spacing=2j)
torch.gradient(torch.tensor([1., 2, 4]).half(), spacing=(torch.tensor([1, 2, 4]),)), torch.gradient(torch.tensor([1., 2, 4]), spacing=(torch.arange(3.).double(),))
torch.gradient(torch.tensor([1., 2, 4]), spacing=(torch.tensor([1j, 2j, 4]),))
torch.gradient(torch.tensor([1, 2, 4], dtype=torch.uint8))
torch.gradient(torch.tensor([9, 2, 4, 1], dtype=torch.int32), edge_order=2), torch.gradient(torch.tensor([9., 2, 4, 1]), edge_order=2, spacing=3.)
torch.gradient(torch.tensor([9., 2, 4]), edge_order=2, spacing=(torch.tensor([1., 3., 4.]),))
torch.gradient(torch.tensor([9., 2, 4, 1, 8]), edge_order=2, spacing=(torch.tensor([1., 3., 4., 8, 9]),))
torch.gradient(torch.tensor([9., 2]), spacing=(torch.tensor([1., 3.]),)), torch.gradient(torch.arange(12.).view(3, 4) ** 2, spacing=(2., .5))
torch.gradient(torch.arange(12.).view(3, 4) ** 2, spacing=[torch.tensor([1., 3, 4]), torch.tensor([1., 2, 4, 5])])
torch.gradient(torch.arange(12.).view(3, 4) ** 2, spacing=(2., torch.tensor([1., 2, 4, 5])))
torch.gradient(torch.tensor([9., 2, 3]), spacing=(torch.tensor(2.),))
x = torch.arange(5., requires_grad=True); torch.gradient(x ** 2, spacing=0.5)[0].sum().backward(); x.grad
torch.diff(torch.ones(2, 2), prepend=torch.ones(3, 1))
"""
WRITES = """
x = torch.zeros(16, dtype=torch.uint8); y = x.as_strided((16,), (1,), 0).view(torch.float32); y.copy_(torch.arange(4.)); x
x = torch.zeros(16, dtype=torch.uint8); y = torch.tensor([]).set_(x.untyped_storage(), 0, (4,)); y.copy_(torch.arange(4.)); x
x = torch.zeros(16, dtype=torch.uint8); y = torch.FloatTensor(x.untyped_storage()); y.copy_(torch.arange(4.)); x
x = torch.zeros(4, dtype=torch.complex64); y = x.as_strided((2,), (2,), 1); y.real.fill_(3); y.imag.fill_(4); torch.view_as_real(y)[0, 1] = 5; x
x = torch.zeros(4, dtype=torch.complex64); y = x.as_strided((2,), (2,), 1).conj(); y.fill_(3 + 1j); x
x = torch.zeros(2, 3).t(); y = x.as_strided((3,), (1,), 1).view(torch.uint8); y.fill_(3); x.view(torch.int32)
torch.zeros(5).index_add_(0, torch.tensor([7]), torch.ones(1))
torch.zeros(5, 2).index_add_(0, torch.tensor([7]), torch.ones(1, 2))
torch.ones(3).index_fill_(0, torch.tensor([0]), 1j)
torch.ones(3, dtype=torch.bool).index_fill_(0, torch.tensor([0]), 1j)
torch.index_select(torch.tensor(3.), 0, torch.tensor([0, 0]))
torch.bernoulli(torch.ones(3), out=torch.empty(3, dtype=torch.int8))
torch.tensor(torch.ones(2)._typed_storage(), dtype=torch.int64)
s = torch.ones(2).untyped_storage(); t = torch.Tensor(s); t.fill_(3); t.data_ptr() == s.data_ptr(), s[3]
from itertools import permutations; [torch.exp(torch.ones(1, 1, 4, 12)[:, :, :, ::2].permute(p)).stride() for p in permutations(range(4))]
from itertools import permutations; x = torch.ones(1, 1, 4, 12)[:, :, :, ::2]; [(x.permute(p).clone() + torch.ones(())).stride() for p in permutations(range(4))]
from itertools import permutations; x = torch.ones(1, 4, 1); [(x.permute(p) + torch.ones(x.permute(p).shape[-1])).stride() for p in permutations(range(3))]
"""
FACTORED = """
torch.manual_seed(0); x = torch.randn(2, 3, 7, 5).bfloat16(); F.adaptive_avg_pool2d(x, (3, 2)), F.adaptive_avg_pool1d(x[0], 3), F.adaptive_avg_pool2d(x.half(), (2, 3))
torch.cholesky_inverse(torch.tensor([[1., 0.], [2., 0.]]))
torch.cholesky_inverse(torch.zeros(3, 2, 2))
torch.cholesky_inverse(torch.tensor([[2., 0.], [1., 4.]])), torch.cholesky_inverse(torch.ones(2, 0, 0))
x = torch.ones(4, 2, requires_grad=True); q, r = torch.linalg.qr(x, mode="complete"); q.shape, r.requires_grad
x = torch.ones(4, 2, requires_grad=True); q, r = torch.linalg.qr(x, mode="complete"); q.sum().backward()
x = torch.ones(2, 4, requires_grad=True); q, r = torch.linalg.qr(x, mode="r"); r.sum().backward()
torch.addr(torch.ones(2, 2, dtype=torch.int64), torch.arange(2), torch.arange(2), beta=True)
torch.linalg.cond(torch.ones(2, 3), "fro")
f = torch.backends.opt_einsum.flags(strategy="greedy"); f.__enter__(), torch.backends.opt_einsum.strategy, f.__exit__(None, None, None)
torch._foreach_add([torch.ones(2)], torch.ones(2))
torch._foreach_addcmul([torch.ones(2)], [torch.ones(2)], [torch.ones(2)], torch.tensor(1))
"""


def lines(*groups: str) -> list[str]:
    return [line for group in groups for line in group.strip().splitlines()]


def outcome(torch, program: str) -> tuple:
    *statements, last = program.split(";")
    def function(forward, backward=lambda ctx, g: g):
        return type("Made", (torch.autograd.Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)}).apply
    names = {"torch": torch, "F": torch.nn.functional, "nn": torch.nn, "function": function}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", "`torch.jit.script` is deprecated")  # PyTorch's own use, at its first forward differentiation
        warnings.filterwarnings("ignore", "Converting a tensor with requires_grad=True to a scalar")  # PyTorch says it once in a process
        try:
            exec(";".join(statements), names)
            try:
                last = compile(last.strip(), "<program>", "eval")
            except SyntaxError:  # a statement whose error is asked for
                last = last.strip()
            found = repr(eval(last, names)) if not isinstance(last, str) else exec(last, names)
        except Exception as error:
            found = type(error).__name__, str(error).split("\n")[0]
    return found, [str(w.message).split(" (Triggered")[0] for w in caught]


TRANSFORMS = """
x = torch.ones(2); F = torch.func; F.vjp(lambda x: None, x)
x = torch.ones(2); F = torch.func; F.vjp(lambda x: (), x)
x = torch.ones(2); F = torch.func; F.vjp(lambda x: (x, 1.0), x)
x = torch.ones(2); F = torch.func; F.vjp(lambda x: (x, x.long()), x)
x = torch.ones(2); F = torch.func; F.jvp(lambda x: None, (x,), (x,))
x = torch.ones(2); F = torch.func; F.jvp(lambda x: x, (1,), (1,))
x = torch.ones(2); F = torch.func; F.jvp(lambda x: x[0], ((x, 1),), ((x, 1),))
x = torch.ones(2); F = torch.func; F.jvp(lambda x: x, (x,), (1.0,))
x = torch.ones(2); F = torch.func; F.jvp(lambda x: x, (), ())
x = torch.ones(2); F = torch.func; F.jvp(lambda x: x, (x.long(),), (x,))
x = torch.ones(2); F = torch.func; F.jacrev(lambda x: ())(x)
x = torch.ones(2); F = torch.func; F.jacfwd(lambda x: ())(x)
x = torch.ones(2); F = torch.func; F.jacrev(lambda x: x.sum())(torch.tensor(3.0)), F.jacfwd(lambda x: x.sum())(torch.tensor(3.0))
x = torch.ones(2); F = torch.func; F.jacrev(lambda x, y: x + y, (0, 1))(x, x + 1j)
x = torch.ones(2); F = torch.func; F.jacfwd(lambda x, y: x + y, (0, 1))(x, x + 1j)
x = torch.ones(2); F = torch.func; F.jacrev(lambda x: (x, x + 1j))(x)
x = torch.ones(2); F = torch.func; F.jacfwd(lambda x: (x, x + 1j))(x)
x = torch.ones(2); F = torch.func; F.jacrev(lambda x: x.long())(x)
x = torch.tensor([1.0, 2.0]); F = torch.func; F.jacrev(lambda x: (x * x, {"a": x.sum()}), chunk_size=1)(x)
x = torch.tensor(2.0); torch.autograd.functional.jacobian(lambda x: x * x, x)
F = torch.func; F.stack_module_state([torch.nn.Linear(1, 1), torch.nn.Linear(1, 1).requires_grad_(False)])
x = torch.ones(2, requires_grad=True); y, pull = torch.no_grad()(lambda: torch.func.vjp(torch.sin, x))(); y.requires_grad, pull(y)[0].requires_grad
"""

INFINITE_MATRICES = """
x = torch.tensor([[1.0, float("inf")], [2.0, 3.0]]); torch.linalg.svd(x), torch.linalg.svdvals(x), torch.linalg.pinv(x), torch.linalg.cond(x), torch.linalg.matrix_rank(x)
x = torch.tensor([[[1.0, float("inf")], [2.0, 3.0]], [[1.0, 0.0], [0.0, 1.0]]]); torch.linalg.svdvals(x), torch.linalg.pinv(x), torch.linalg.matrix_norm(x, 2)
x = torch.tensor([[1.0, float("nan")], [2.0, 3.0]]); torch.linalg.svdvals(x)
x = torch.tensor([[[1.0, 0.0], [0.0, 1.0]], [[1.0, float("nan")], [2.0, 3.0]]]); torch.linalg.pinv(x)
torch.linalg.pinv(torch.ones(4, 2), hermitian=True)
"""

CONJUGATED_WINDOWS = """
z = (torch.arange(6.0) * (1 + 1j)).reshape(2, 3); w = z.conj().as_strided((2, 2), (3, 1)).imag; w.mul_(2.0); z, w
z = (torch.arange(6.0) * (1 + 1j)).reshape(2, 3).conj(); w = z.as_strided((2, 2), (3, 1)).imag; w.fill_(7.0); z, w
z = (torch.arange(6.0) * (1 + 1j)).reshape(2, 3); w = z.conj().as_strided((3, 2), (1, 1)).imag; w[2].add_(1.0); z, w
z = (torch.arange(6.0) * (1 + 1j)).reshape(2, 3); w = z.conj().as_strided((2,), (1,), 1); w.real.add_(2.0); w.add_(2j); z, w
x = torch.diag(torch.tensor([1.0, 1e-3, 1e-6])); [torch.linalg.lstsq(x, torch.ones(3, 1), rcond=r, driver=d).solution for d in ("gelsd", "gelss") for r in (0.5, 1.0, 2.0, -1.0)]
"""

STRICT = """
A = torch.autograd.functional; A.jacobian(lambda x: torch.ones(3, requires_grad=True) * 2, torch.ones(3), strict=True)
A = torch.autograd.functional; A.jacobian(lambda x, y: (x * 2, y * 3), (torch.ones(3), torch.ones(3)), strict=True)
A = torch.autograd.functional; A.jacobian(lambda x: x * 2, torch.ones(3), strict=True, create_graph=True)
A = torch.autograd.functional; A.vjp(lambda x: x * 2, torch.ones(3), torch.ones(3), strict=True, create_graph=True)
A = torch.autograd.functional; A.jvp(lambda x: x * 2, torch.ones(3), torch.ones(3), strict=True, create_graph=True)
A = torch.autograd.functional; A.vjp(lambda x: x ** 3, torch.ones(3), torch.ones(3), strict=True, create_graph=True)[1].requires_grad
A = torch.autograd.functional; A.vhp(lambda x: x.sum(), torch.ones(3), torch.ones(3), strict=True)
A = torch.autograd.functional; A.hvp(lambda x: x.sum(), torch.ones(3), torch.ones(3), strict=True)
A = torch.autograd.functional; A.hessian(lambda x: x.sum(), torch.ones(3), strict=True)
A = torch.autograd.functional; A.hessian(lambda x, y: (x ** 3).sum() + (y ** 3).sum(), (torch.ones(3), torch.ones(3)), strict=True)
A = torch.autograd.functional; A.hvp(lambda x: x[0] * x[1], torch.ones(3), torch.ones(3), strict=True, create_graph=True)
A = torch.autograd.functional; A.hvp(lambda x: (x ** 3).sum(), torch.ones(3), torch.ones(3), strict=True)
A = torch.autograd.functional; A.jacobian(lambda x: x * 2, torch.ones(3), strict=True, vectorize=True)
A = torch.autograd.functional; A.jacobian(lambda x: x * 2, torch.ones(3), strategy="forward-mode")
A = torch.autograd.functional; A.jacobian(lambda x: (x * x.sum(), torch.ones(2), x[:0]), torch.tensor([1.0, 2.0]), vectorize=True)
A = torch.autograd.functional; A.hessian(lambda x, y: (x ** 3 * y ** 2).sum(), (torch.tensor([1.0, 2.0]), torch.ones(2)), vectorize=True)
x = torch.ones(2, requires_grad=True); torch.autograd.functional.jacobian(lambda x: x ** 3, x, create_graph=True, vectorize=True).sum().backward(); x.grad
"""

EMPTY = """
nn.utils.rnn.pack_padded_sequence(torch.ones(0, 0), torch.ones(0, 0))
"""

FACTORS_IN_TENSORS = """
x = torch.arange(3.); a = torch.tensor(2.5, dtype=torch.float64); torch.add(x, x, alpha=a), x.clone().sub_(x, alpha=a), torch.add(x[0], x[1], alpha=a), torch.rsub(x, x, alpha=a)
x = torch.arange(3.); a = torch.tensor(2); torch.add(x, x, alpha=a), torch.sub(x.int(), x.int(), alpha=a), torch.add(x > 1, x > 0, alpha=a), torch.addcmul(x, x, x, value=a)
x = torch.arange(3.); a = torch.tensor(2.7).double(); torch.addcmul(x[0], x[1], x[2], value=a), torch.addcdiv(x[0], x[1], x[2], value=a), torch.addcmul(*[x.int()] * 3, value=a)
x = (torch.arange(9.) / 7).bfloat16(); a = torch.tensor(0.3); torch.add(x, x, alpha=a), torch.addcmul(x, x, x, value=a), torch.addcmul(x[3], x[4], x[5], value=a)
w = torch.ones(3, requires_grad=True); a = torch.tensor(2.); y = torch.add(torch.ones(3), w, alpha=a); a.mul_(3); y.sum().backward(); y, w.grad
torch.add(torch.arange(3), torch.arange(3), alpha=torch.tensor(2.))
torch.add(torch.ones(3) > 1, torch.ones(3) > 1, alpha=torch.tensor(2.))
torch.add(torch.ones(3), torch.ones(3), alpha=torch.tensor(True))
torch.ones(3).add_(torch.ones(3), alpha=torch.tensor(1j))
torch.addcmul(torch.ones(3), torch.ones(3), torch.ones(3), value=torch.tensor(1j))
torch.add(torch.ones(3), torch.ones(3), alpha=torch.tensor([2.]))
torch.ones(3).sub_(torch.ones(3), alpha=torch.tensor(2., requires_grad=True))
torch.addcdiv(torch.ones(3), torch.ones(3), torch.ones(3), value=torch.tensor([2.]))
torch.addmm(torch.ones(2, 2), torch.ones(2, 2), torch.ones(2, 2), alpha=torch.tensor([2.]))
i = torch.arange(3); i.clone().index_add_(0, i, i, alpha=2.5), (i > 1).index_add_(0, i, i > 0, alpha=2.5), i.clone().index_add_(0, i, i, alpha=torch.tensor(2.5))
i = torch.arange(3); i.clone().index_add_(0, i, i, alpha=2j)
"""

SUMS_OF_SHORT_NUMBERS = """
x = (torch.arange(90) * 37 % 101).bfloat16(); i = torch.arange(90) % 3; torch.zeros(3, dtype=x.dtype).scatter_add(0, i, x), torch.zeros(3, dtype=x.dtype).index_add(0, i, x)
x = (torch.arange(90) * 37 % 101).half() / 7; i = torch.arange(45) % 3; z = torch.zeros(3, 2).half(); z.index_add(0, i, x.reshape(45, 2)), z.T.index_add(1, i, x.reshape(2, 45))
x = (torch.arange(90) * 37 % 101).bfloat16().reshape(45, 2); i = torch.arange(45) % 3; torch.zeros(3, 2, dtype=x.dtype).index_add(0, i, x, alpha=0.3)
x = torch.ones(3, 2).bfloat16().requires_grad_(); n = torch.arange(60)[:, None]; (x.gather(0, (n % 3).expand(60, 2)) * (n * 37 % 101 / 7).bfloat16()).sum().backward(); x.grad
"""

NAMED_ARGUMENTS = """
torch.max(torch.tensor([1j, 2]), 0)
torch.min(torch.tensor([1j, 2]), dim=0)
torch.tensor([1j, 2]).max(0)
torch.tensor([1j, 2]).max()
torch.amax(torch.tensor([1j, 2]), 0)
torch.tensor([1j, 2]).argmax(0)
torch.median(torch.tensor([1j, 2]), 0)
torch.aminmax(torch.tensor([1j, 2]), dim=0)
torch.cummax(torch.tensor([1j, 2]), 0)
torch.maximum(torch.tensor([1j, 2]), torch.tensor([1j, 2]))
torch.zeros(2, requires_grad="x")
torch.ones(2, requires_grad="x")
torch.ones(2, requires_grad=1)
torch.ones(2, requires_grad=None)
torch.empty(2, requires_grad="x")
torch.full((2,), 1., requires_grad="x")
torch.rand(2, requires_grad="x")
torch.randn(2, requires_grad=2)
torch.tensor([2.], requires_grad="x")
torch.tensor([2.], requires_grad=1)
torch.arange(2., requires_grad="x")
torch.linspace(0, 1, 3, requires_grad="x")
torch.eye(2, requires_grad="x")
torch.zeros_like(torch.ones(2), requires_grad="x")
torch.rand_like(torch.ones(2), requires_grad="x")
torch.ones(2).new_zeros(2, requires_grad="x")
torch.ones(2).new_full((2,), 1., requires_grad="x")
torch.ones(2).new_tensor([2.], requires_grad="x")
torch.randint(0, 2, (2,), requires_grad="x")
torch.normal(0., 1., (2,), requires_grad="x")
torch.empty_strided((2,), (1,), requires_grad="x")
torch.tensor([1j]).bool()
t = torch.ones(2); t.add(t, alpha="x")
t = torch.ones(2); torch.add(t, t, alpha="x")
t = torch.ones(2); torch.sub(t, t, alpha="x")
t = torch.ones(2); t.add_(t, alpha="x")
t = torch.ones(2); t.add(t, alpha=None)
t = torch.ones(2); t.add(t, alpha=t)
t = torch.ones(2); torch.addcmul(t, t, t, value="x")
t = torch.ones(2, 2); torch.addmm(t, t, t, beta="x")
t = torch.ones(2); t.addcdiv_(t, t, value="x")
torch.full((2,), fill_value="a")
torch.full((2,), "a")
torch.full_like(torch.ones(2), "a")
torch.full((2,), None)
torch.ones(2).new_full((2,), "a")
x = torch.ones(2); c = x > 0; x.where(c)
x = torch.ones(2); torch.where(x)
x = torch.ones(2); x.where()
x = torch.ones(2); torch.where(x, x, x)
torch.zeros(-1)
torch.ones(2, -3)
torch.zeros((-1,))
torch.empty(-1)
torch.full((-1,), 1)
torch.rand(-1)
torch.randn(2, -1)
torch.randint(2, (-1,))
torch.eye(-1)
torch.ones(2).new_zeros(-1)
torch.empty_strided((-1,), (1,))
torch.arange(3).view(-2)
torch.ones(2).expand(-2)
torch.Tensor(-1)
torch._assert_tensor_metadata(torch.ones(2), [2], [1], torch.float32)
torch._assert_tensor_metadata(torch.ones(2), dtype=torch.int64)
torch._assert_tensor_metadata(torch.ones(2), [3])
torch._assert_tensor_metadata(torch.ones(2), [2], [2])
torch._assert_tensor_metadata(torch.ones(2), device="cpu", layout=torch.strided)
torch._assert_tensor_metadata(torch.ones(2), layout=torch.sparse_coo)
torch._assert_tensor_metadata(torch.ones(2), device="meta")
torch._assert_tensor_metadata(1)
torch.ops.aten._assert_tensor_metadata(torch.ones(2), [2], [1], torch.float32)
m = nn.utils.parametrizations.weight_norm(nn.Linear(2, 2)); m.weight.grad_fn.name()
m = nn.utils.parametrizations.weight_norm(nn.Conv1d(2, 2, 2), dim=2); m.weight.grad_fn.name()
torch._weight_norm(torch.ones(2, 2, requires_grad=True), torch.ones(2, 1), 0).grad_fn.name()
f = function(lambda ctx, x: x * 2, lambda ctx, g: 1); torch.autograd.gradcheck(f, (torch.ones(2, requires_grad=True).double().detach().requires_grad_(),))
f = function(lambda ctx, x: x * 2, lambda ctx, g: 1); f(torch.ones(2, requires_grad=True)).sum().backward()
f = function(lambda ctx, x: x * 2, lambda ctx, g: "a"); f(torch.ones(2, requires_grad=True)).sum().backward()
f = function(lambda ctx, x: x * 2, lambda ctx, g: (g, 1)); f(torch.ones(2, requires_grad=True)).sum().backward()
f = function(lambda ctx, x: x * 2, lambda ctx, g: (1,)); f(torch.ones(2, requires_grad=True)).sum().backward()
torch.zeros(2, -1)
torch.zeros(-1, -2)
torch.zeros((2, -3))
torch.zeros_like(torch.ones(2)).new_zeros((-3,))
torch.arange(6).view(2, -3)
torch.arange(6).reshape(-2, 3)
torch.arange(6).view(-1, -1)
torch.arange(6).reshape(-3)
torch.Tensor(2, -1)
torch._assert_tensor_metadata(torch.ones(2, dtype=torch.int64), dtype=torch.float64)
torch._assert_tensor_metadata(torch.ones(2, dtype=torch.bool), dtype=torch.float16)
torch._assert_tensor_metadata(torch.ones(2, dtype=torch.bfloat16), dtype=torch.bool)
torch._assert_tensor_metadata(torch.ones(2, dtype=torch.complex64), dtype=torch.complex128)
torch._assert_tensor_metadata(torch.ones(2, dtype=torch.half), dtype=torch.uint8)
torch._assert_tensor_metadata(torch.ones(2, dtype=torch.uint8), dtype=torch.int8)
torch._assert_tensor_metadata(torch.ones(2, dtype=torch.int8), dtype=torch.int16)
torch._assert_tensor_metadata(torch.ones(2, dtype=torch.int16), dtype=torch.int32)
torch._assert_tensor_metadata(torch.ones(2, dtype=torch.int32), dtype=torch.bfloat16)
torch._assert_tensor_metadata(torch.ones(2, dtype=torch.float64), dtype=torch.complex64)
torch._assert_tensor_metadata(torch.ones(2), "x")
torch._assert_tensor_metadata(torch.ones(2).to_sparse(), layout=torch.strided)
torch._assert_tensor_metadata(torch.ones(2), size=None, stride=None, dtype=None)
torch.zeros(2, requires_grad=0)
torch.zeros(2, requires_grad=torch.tensor(True))
torch.addmm(torch.ones(2, 2), torch.ones(2, 2), torch.ones(2, 2), alpha="x")
torch.rsub(torch.ones(2), 1, alpha="x")
torch.baddbmm(torch.ones(1, 2, 2), torch.ones(1, 2, 2), torch.ones(1, 2, 2), alpha="x")
torch.addr(torch.ones(2, 2), torch.ones(2), torch.ones(2), alpha="x")
torch.ones(2).index_add(0, torch.tensor([0]), torch.ones(1), alpha="x")
"""
REAL_PARTS = """
torch.set_warn_always(True); z = torch.tensor([1j]); z.to(torch.float32), z.int(), z.bool(), z.half(), torch.zeros(1).copy_(z), torch.set_warn_always(False)
torch.set_warn_always(True); z = torch.tensor([1j]); z.sum(dtype=torch.float32), z.mean(0, dtype=torch.float32), z.cumsum(0, dtype=torch.float64), torch.set_warn_always(False)
torch.set_warn_always(True); z = torch.tensor([1j]); torch.as_tensor(z, dtype=torch.float32), torch.tensor([1j])[:0].float(), torch.set_warn_always(False)
torch.set_warn_always(True); x = torch.ones(1, requires_grad=True); (x.to(torch.complex64) * 2).real.sum().backward(), x.grad, torch.set_warn_always(False)
"""
AFFINE_GRIDS = """
t = torch.ones(2, 2, 3, requires_grad=True); y = F.affine_grid(t, (2, 1, 3, 4), align_corners=True); y.sum().backward(); y.sum().backward(); t.grad.round()
t = torch.ones(2, 3, 4, requires_grad=True); y = F.affine_grid(t, (2, 1, 1, 3, 4), align_corners=False); y.sum().backward(); y.sum().backward(); t.grad, y.detach()
t = torch.ones(1, 2, 3, requires_grad=True); y = F.affine_grid(t, (1, 1, 2, 2), True); g, = torch.autograd.grad((y ** 2).sum(), t, create_graph=True); g.norm().backward(); t.grad
F.affine_grid(torch.ones(1, 2, 3), (2, 1, 2, 2), align_corners=False)
F.affine_grid(torch.ones(1, 2, 3), [1, 1, 2, 2.5], align_corners=False)
torch.affine_grid_generator(torch.ones(1, 2, 3, dtype=torch.int64), (1, 1, 2, 2), True)
torch.affine_grid_generator(torch.ones(1, 2, 3), (1, 1, 2), False)
torch.affine_grid_generator(torch.ones(1, 3, 3), (1, 1, 2, 2), False)
torch.affine_grid_generator(torch.ones(1, 2, 3), (1, 1, 2, 0), False).shape
a = torch.autocast("cpu", dtype=torch.bfloat16); a.__enter__(); y = F.affine_grid(torch.ones(1, 2, 3), (1, 1, 2, 2), align_corners=False); a.__exit__(None, None, None); y
"""

NEW_USERS = """
torch.jit.script(torch.nn.Sequential(torch.nn.ReLU(), torch.nn.LazyLinear(2)))
torch.jit.script(torch.nn.LazyBatchNorm2d())
m = torch.nn.LazyLinear(3); m(torch.ones(2, 4)); torch.jit.script(m)(torch.ones(1, 4)).shape
a = torch.randn(2, 3, 4); torch.einsum("iij->ij", a)
a = torch.randn(2, 3, 4); torch.einsum("bij->bii", a)
a = torch.randn(2, 3, 4); torch.einsum("...i...j", a)
a = torch.randn(2, 3, 4); torch.einsum("b.ij", a)
a = torch.randn(2, 3, 4); torch.einsum("bijl", a)
a = torch.randn(2, 3, 4); torch.einsum("bij->b->i", a)
a = torch.randn(2, 3, 4); torch.einsum("...bijl", a)
a = torch.randn(2, 3, 4); torch.einsum("bij->q", a)
torch.einsum("b...,b...->...", torch.ones(2, 3, 4), torch.ones(2, 4, 5))
torch.tensordot(torch.ones(2, 3, 4), torch.ones(2, 4, 5), 2)
torch.tensordot(torch.ones(2, 3, 4), torch.ones(2, 4, 5), ([-1], [0]))
torch.block_diag(torch.ones(2, 2), torch.ones(1, 2, 3))
torch.block_diag(1)
torch.tensor([1j]).sort()
torch.tensor([1.0]) << 2
torch.tensor([1]) >> 1.5
nn.utils.rnn.pad_sequence("ab")
nn.utils.rnn.pad_sequence([torch.ones(2, 3), torch.ones(3, 1)])
nn.utils.rnn.pad_sequence([torch.ones(1, 2).long(), torch.full((2, 2), 1.5)])
torch.distributions.Categorical(torch.tensor([-1.0, 1.0]))
torch.func.vjp(lambda a: (a, a.sum()), torch.ones(2))[1](torch.ones(2))
A = torch.autograd.Function; F = type("F", (A,), dict(forward=staticmethod(lambda ctx, x: [x * 2, x]), backward=None)); F.apply(torch.ones(2, requires_grad=True))
"""

LAYER_ARGUMENTS = """
m = nn.Module(); m.a = 5; m.a = nn.Buffer(torch.ones(1))
m = nn.Module(); m.a = nn.Parameter(torch.ones(1)); m.a = nn.Buffer(torch.ones(1)); [k for k in m.__dict__ if k == "a"], list(m.buffers()), list(m.parameters())
m = nn.Module(); m.a = 5; m.a = nn.Linear(1, 1); [k for k in m.__dict__ if k == "a"], m.a
nn.Linear(2, 2).to("cpu", copy=True)
nn.Linear(2, 2).to(torch.float64, False, False)
F.affine_grid(torch.ones(1, 2, 3), (1, 1, 2, 1), align_corners=True)
F.affine_grid(torch.ones(1, 3, 4), (1, 1, 2, 1, 2), align_corners=True)
nn.Fold((4, 5), (2, 2), dilation=8)(torch.ones(1, 12, 12))
F.fold(torch.ones(12, 12), (4, -5), (2, 2))
F.fractional_max_pool2d(torch.ones(1, 2, 8, 8), 2, output_ratio=(0.5, 0.5, 0.5))
F.fractional_max_pool2d(torch.ones(1, 2, 8, 8), 2, output_ratio=(0.5,))
F.fractional_max_pool2d(torch.ones(1, 2, 8, 8), 2, (5,))
F.fractional_max_pool2d(torch.ones(1, 2, 8, 8), (2, 2, 2), (5, 5))
F.fractional_max_pool3d(torch.ones(1, 2, 8, 8, 8), 2, (5, 5))
F.fractional_max_pool3d(torch.ones(1, 2, 8, 8, 8), (2, 2), (5, 5, 5))
nn.BatchNorm1d(3)(torch.ones(0, 3, dtype=torch.float64)).shape
F.hardtanh_(torch.arange(3.0).expand(2, 3))
D = type("D", (torch.distributions.Distribution,), {}); D(validate_args=True)
D = type("D", (torch.distributions.Distribution,), dict(arg_constraints={})); D(validate_args=True)._validate_sample(torch.ones(()))
"""

BOOLEAN_ALPHAS = """
torch.add(1, 1, alpha=True)
torch.add(torch.ones(1), torch.ones(1), alpha=True)
torch.sub(torch.ones(1), 1, alpha=True)
torch.ones(1).add_(1, alpha=True)
torch.rsub(torch.ones(1), 1, alpha=True)
torch.add(torch.tensor(True), True, alpha=True), torch.add(torch.tensor(True), torch.tensor(False), alpha=1)
torch.add(torch.tensor(1), 1, alpha=1.0)
torch.add(torch.ones(1), torch.ones(1, dtype=torch.int64), alpha=1.0)
torch.tensor([1 + 2j]).conj().imag.view(torch.int32)
"""

SPARSE_WEIGHTS = """
w = torch.tensor([[0.0, 1, 0], [2, 0, 3]]).to_sparse(); F.linear(torch.arange(6.0).view(2, 3), w)
w = torch.tensor([[0.0, 1, 0], [2, 0, 3]]).to_sparse(); F.linear(torch.arange(3.0), w, torch.ones(2)), F.linear(torch.arange(12.0).view(2, 2, 3), w, torch.ones(2))
w = torch.tensor([[0.0, 1, 0], [2, 0, 3]]).to_sparse(); x = torch.ones(2, 3, requires_grad=True); F.linear(x, w).sum().backward(); x.grad
x = torch.tensor([[0.0, 1, 0], [2, 0, 3]]).to_sparse(); w = torch.arange(6.0).view(2, 3).requires_grad_(); F.linear(x, w).sum().backward(); w.grad
"""

MEMORY = """
torch.empty_strided((0, 3), (5, 7)).stride(), torch.empty_strided((1,), (0,)).stride(), torch.empty_strided((2, 3, 4, 0), (12, 4, 1, 1)).stride()
S = type("S", (), dict(__len__=lambda self: 2, __getitem__=lambda self, i: {}[i])); torch.tensor(S())
S = type("S", (), dict(__len__=lambda self: 2, __getitem__=lambda self, i: [1, 2][i])); torch.tensor(S())
"""

KERNELS = """
b = torch.ones(2, dtype=torch.bool); torch.fmod(b, True)
b = torch.ones(2, dtype=torch.bool); b % b
b = torch.ones(2, dtype=torch.bool); torch.remainder(True, b)
b = torch.ones(2, dtype=torch.bool); b % 2, b // 2, torch.fmod(b, 2), b << 2
b = torch.ones(2, dtype=torch.bool); b // b
b = torch.ones(2, dtype=torch.bool); torch.div(b, b, rounding_mode="trunc")
torch.ones(2, dtype=torch.complex64) // 2
b = torch.ones(2, dtype=torch.bool); b << b
b = torch.ones(2, dtype=torch.bool); b.bitwise_right_shift_(True)
torch.ones(2).half() << 1
torch.ones(2).half() & torch.ones(2)
torch.ones(2, dtype=torch.int64) | 2.5
torch.ones(2, dtype=torch.complex64) ^ torch.ones(2, dtype=torch.complex128)
torch.ones(2) & torch.ones(3)
torch.hypot(torch.ones(2, dtype=torch.int32), torch.ones(2, dtype=torch.bool))
torch.hypot(torch.ones(2, dtype=torch.int32), torch.ones(2)), torch.nextafter(torch.ones(2, dtype=torch.int32), torch.ones(2))
torch.nextafter(torch.ones(2, dtype=torch.int64), torch.ones(2, dtype=torch.bool))
torch.hypot(torch.ones(2, dtype=torch.int32), torch.ones(3, dtype=torch.int32))
torch.igamma(torch.ones(2, dtype=torch.bool), torch.ones(2, dtype=torch.uint8))
torch.ldexp(torch.ones(2).half(), torch.tensor([True, False]))
torch.ldexp(torch.ones(2), torch.tensor(True))
torch.ldexp(torch.ones(2, dtype=torch.int64), torch.tensor([True, False])), torch.ldexp(torch.ones(1, dtype=torch.complex64), torch.tensor([True]))
torch.lerp(torch.tensor([True]), torch.tensor([False]), 0.5)
torch.lerp(torch.tensor([1]), torch.tensor([2]), 1)
torch.lerp(torch.tensor([1]), torch.tensor([2]), torch.tensor([1]))
torch.lerp(torch.tensor([1]), torch.tensor([2]), torch.tensor([0.5]))
torch.lerp(torch.ones(2), torch.ones(2), torch.ones(2).double())
torch.lerp(torch.ones(2), torch.ones(2, dtype=torch.int64), 0.5)
torch.lerp(torch.zeros(2), torch.ones(2), torch.tensor(1)), torch.lerp(torch.zeros(2), torch.ones(2), torch.tensor(0.5, dtype=torch.float64))
torch.cross(torch.ones(3, dtype=torch.bool), torch.ones(3), dim=0)
torch.cross(torch.ones(3), torch.ones(3).double(), dim=0)
torch.linalg.cross(torch.ones(3, dtype=torch.int32), torch.ones(3, dtype=torch.int64))
torch.heaviside(torch.ones(2), torch.ones(2, dtype=torch.complex64))
torch.dist(torch.tensor([1]), torch.tensor([2]))
torch.addcmul(torch.tensor([True]), torch.tensor([True]), torch.tensor([True]), value=2j)
torch.addcmul(torch.ones(1).int(), torch.ones(1).int(), torch.ones(1).int(), value=2j)
torch.addcdiv(torch.ones(1).double(), torch.ones(1), torch.ones(1), value=2j)
"""

SHORT_INDICES = """
x = torch.arange(4.).view(2, 2); x[torch.tensor([1, 0], dtype=torch.int8)]
x = torch.arange(4.).view(2, 2); x[0, torch.tensor([1, 0], dtype=torch.int16)]
x = torch.arange(4.).view(2, 2); x[torch.tensor([1, 0], dtype=torch.int16)] = 1
x = torch.arange(4.).view(2, 2); x[[0, 1], torch.tensor([1, 0], dtype=torch.int8)]
x = torch.arange(4.).view(2, 2); x.index_put((torch.tensor([1, 0], dtype=torch.int8),), torch.tensor(1.))
x = torch.arange(4.).view(2, 2); x[torch.tensor(1, dtype=torch.int8)], x[torch.tensor([1], dtype=torch.int32)]
"""

PLAIN_FLAGS = """
torch.ones(2).sum(0, keepdim=1)
torch.ones(2).sum(0, keepdim=0)
torch.ones(2).argmax(0, keepdim="yes")
torch.ones(2).prod(0, keepdim=1.0)
torch.ones(2).logsumexp(0, keepdim=np.True_)
torch.ones(2).kthvalue(1, 0, keepdim=1)
torch.ones(2).amax(0, keepdim=1)
torch.ones(2).median(0, keepdim=torch.tensor(True))
torch.ones(2).nansum(0, keepdim=1)
torch.ones(2).aminmax(dim=0, keepdim=1)
"""

EDGE_GRADIENTS = """
x = torch.tensor([1., 2., torch.nan], requires_grad=True); y = torch.tensor([1., 3., 1.], requires_grad=True); torch.autograd.grad(torch.maximum(x, y).sum(), (x, y))
x = torch.tensor([1., 2., torch.nan], requires_grad=True); y = torch.tensor([1., 3., 1.], requires_grad=True); torch.autograd.grad(torch.minimum(x, y).sum(), (x, y))
x = torch.tensor([0., 1., torch.nan], requires_grad=True); torch.autograd.grad(torch.relu(x).sum(), x)
x = torch.tensor([0., 0., 1., -2.], requires_grad=True); y = torch.tensor([0., -1., 0., 2.], requires_grad=True); torch.autograd.grad(torch.atan2(x, y).sum(), (x, y))
x = torch.tensor([0., 1., 0.5, 2., -1.], requires_grad=True); torch.autograd.grad(torch.logit(x).sum(), x)
x = torch.tensor([0., 1., 0.5, 2., -1.], requires_grad=True); torch.autograd.grad(torch.logit(x, 0.1).sum(), x)
x = torch.tensor([-torch.inf, -torch.inf], requires_grad=True); torch.autograd.grad(x.logsumexp(0), x)
x = torch.tensor([torch.inf, 1.], requires_grad=True); torch.autograd.grad(x.logsumexp(0), x)
x = torch.tensor([[1., -torch.inf], [2., 3.]], requires_grad=True); torch.autograd.grad(x.logsumexp(1).sum(), x)
x = torch.tensor([0., 1., -1.], requires_grad=True); g, = torch.autograd.grad(F.elu(x).sum(), x, create_graph=True); torch.autograd.grad(g.sum(), x)
x = torch.tensor([0., 1., -1.], requires_grad=True); g, = torch.autograd.grad(F.selu(x).sum(), x, create_graph=True); torch.autograd.grad(g.sum(), x)
x = torch.tensor([[1., 0., 2.]], requires_grad=True); torch.autograd.grad(F.multi_margin_loss(x, torch.tensor([0])), x)
x = torch.tensor([[1., 0., 2.]], requires_grad=True); torch.autograd.grad(F.multi_margin_loss(x, torch.tensor([0]), p=2), x)
x = torch.tensor([1.], requires_grad=True); torch.autograd.grad(torch.std_mean(x, correction=0)[0], x)
x = torch.tensor([2., 2.], requires_grad=True); torch.autograd.grad(sum(torch.std_mean(x)), x)
x = torch.tensor([2., 4.], requires_grad=True); torch.autograd.grad(sum(torch.var_mean(x)), x)
x = torch.tensor([1 + 2j, -1 + 0.5j, -2 - 3j], requires_grad=True); torch.autograd.grad(torch.acosh(x).real.sum(), x)
x = torch.tensor([1., 3., 2., 3.], requires_grad=True); [torch.autograd.grad(f(x), x, torch.tensor(g)) for f in (torch.max, torch.min) for g in (torch.nan, torch.inf)]
x = torch.tensor([1., torch.nan, 2.], requires_grad=True); [torch.autograd.grad(f(x), x, torch.tensor(torch.inf)) for f in (torch.max, torch.min, torch.median, torch.nanmedian)]
x = torch.tensor([1., 3., 2., 3.], requires_grad=True); [torch.autograd.grad(f(x, 0), x, torch.tensor(torch.inf)) for f in (torch.amax, torch.amin)]
x = torch.tensor([0., 2.], requires_grad=True); y = torch.heaviside(x, x); [y.requires_grad, y.sum().backward()]
x = torch.ones(2, requires_grad=True); torch.special.zeta(x + 1, x).sum().backward()
x = torch.ones(2, requires_grad=True); torch.special.zeta(x.detach() + 1, x).sum().backward()
x = torch.ones(2, requires_grad=True); [torch.igamma(x, torch.ones(2)).requires_grad, torch.igamma(x, torch.ones(2)).sum().backward()]
x = torch.ones(3, requires_grad=True); x.backward(torch.ones(3, dtype=torch.float64)); x.grad.dtype
x = torch.ones(3, requires_grad=True); torch.autograd.grad(x * 2, x, torch.ones(3, dtype=torch.float16))[0]
x = torch.tensor([0., torch.nan, -2.], requires_grad=True); torch.autograd.grad(x.abs().sum(), x)
x = torch.zeros(1, dtype=torch.complex64, requires_grad=True); g, = torch.autograd.grad(x.abs().sum(), x, create_graph=True); torch.autograd.grad(g.real.sum(), x)[0].abs()
x = torch.tensor([0., 0.5], requires_grad=True); g, = torch.autograd.grad(torch.sinc(x).sum(), x, create_graph=True); torch.autograd.grad(g.sum(), x)[0][0]
x = torch.tensor([[[1., 2.], [3., 4.]], [[2., 0.], [0., 4.]]], requires_grad=True); y = torch.logdet(x); y.detach(), torch.autograd.grad(y.sum(), x)[0] + 0
x = torch.tensor([0., 0.5, -1.], requires_grad=True); torch.autograd.grad(F.kl_div(torch.zeros(3), x, reduction="sum"), x)
i = torch.tensor([0, 0, 1]); x = torch.ones(3, requires_grad=True); y = torch.ones(3, requires_grad=True); torch.autograd.grad(x.index_put((i,), y) @ torch.arange(1., 4), (x, y))
i = torch.tensor([0, 0, 1]); x = torch.ones(3, requires_grad=True); y = torch.ones(1, requires_grad=True); torch.autograd.grad(x.index_put((i,), y) @ torch.arange(1., 4), (x, y))
i = torch.tensor([0, 0, 1]); x = torch.ones(3, requires_grad=True); y = torch.ones(1, requires_grad=True); torch.autograd.grad(x.index_put((i,), y, True) @ torch.arange(1., 4), y)
y = torch.ones(3, 1, requires_grad=True); z = torch.ones(3, 2); z[torch.tensor([0, 0, 2])] = y; (z * torch.arange(1, 4)[:, None]).sum().backward(); y.grad
y = torch.ones(3, requires_grad=True); z = torch.ones(3, 2); z[torch.tensor([0, 0, 2]), torch.tensor([0, 0, 1])] = y; (z * torch.arange(1, 7).view(3, 2)).sum().backward(); y.grad
y = torch.ones(3, 2, requires_grad=True); z = torch.ones(3, 2); z[:, torch.tensor([0, 0])] = y; (z * torch.arange(1, 4)[:, None]).sum().backward(); y.grad
x = torch.ones(2, requires_grad=True); y = torch.zeros(3).index_put((torch.zeros(2).long(),), x); g, = torch.autograd.grad(y @ y, x, create_graph=True); g.sum().backward(); x.grad
"""

OLD_NAMES = """
torch.qr(torch.eye(2)).R.shape
torch.eye(2).lu()[1]
torch.cholesky(torch.eye(2))
torch.triangular_solve(torch.eye(2), torch.eye(2)).solution
torch.lu_solve(torch.eye(2), *torch.linalg.lu_factor(torch.eye(2)))
torch.cross(torch.eye(3), torch.ones(3, 3)), torch.cross(torch.eye(3), torch.ones(3, 3), dim=0)
torch.where(torch.tensor([1, 0], dtype=torch.uint8), torch.ones(2), 0)
torch.ones(2).where(torch.tensor([1, 0], dtype=torch.uint8), torch.zeros(2))
torch.zeros(2).scatter(0, torch.tensor([0, 0]), torch.ones(2), reduce="add")
torch.ones(2).scatter_(0, torch.tensor([0, 0]), 3, reduce="multiply")
torch.chain_matmul(torch.eye(2), torch.eye(2))
torch.set_default_tensor_type("torch.FloatTensor")
torch.zeros(2).masked_scatter(torch.tensor([1, 0], dtype=torch.uint8), torch.ones(2))
torch.autograd.detect_anomaly().__exit__()
torch.utils.checkpoint.checkpoint_sequential([torch.relu], 1, torch.ones(2))
"""

LAYER_INPUTS = """
x = torch.arange(3.0).expand(2, 3); F.threshold(x, 0.5, 0.5, inplace=True)
x = torch.arange(3.0).expand(2, 3); F.threshold_(x, 0.5, 7), torch.threshold(x, 1, 2), F.relu_(x)
F.cosine_similarity(torch.ones(3), torch.ones(3), dim=0, eps=-1.0)
F.cosine_similarity(torch.ones(3).int(), torch.ones(3).int(), dim=0, eps=-1.5)
F.pdist(torch.tensor([[float("inf"), 1, 2], [float("inf"), 1, 3]]), p=0), F.pdist(torch.tensor([[float("inf"), 1], [2, 1]]), p=0)
torch.cdist(torch.tensor([[float("nan"), 1, 3]]), torch.tensor([[2.0, 1, 1], [4, 5, 6]]), p=0)
x = torch.tensor([[1.0, 2], [1, 3]], requires_grad=True); F.pdist(x, p=0).sum().backward(); x.grad
F.rrelu(torch.ones(3), float("inf"), 1.0)
F.rrelu(torch.ones(3, dtype=torch.int32), 1.0, float("nan"))
F.rrelu(torch.ones(3), -float("inf"), 1.0, training=True)
F.ctc_loss(torch.ones(0, 0, 4), torch.zeros(0, dtype=torch.int64), torch.zeros(0, dtype=torch.int64), torch.zeros(0, dtype=torch.int64))
F.ctc_loss(torch.ones(0, 2, 4), torch.zeros(2, 1, dtype=torch.int64), torch.zeros(2, dtype=torch.int64), torch.zeros(2, dtype=torch.int64), reduction="none")
nn.PixelShuffle(2**40)(torch.ones(1, 16, 2, 2))
"""

CELLS = """
torch.rnn_tanh_cell(torch.ones(4, 8), torch.ones(4, 16), torch.ones(17, 8), torch.ones(17, 16))
torch.rnn_relu_cell(torch.ones(4, 8), torch.ones(4, 16), torch.ones(16, 8), torch.ones(17, 16))
torch.gru_cell(torch.ones(4, 8), torch.ones(4, 16), torch.ones(47, 8), torch.ones(47, 16), torch.ones(47), torch.ones(47))
torch.lstm_cell(torch.ones(4, 8), (torch.ones(4, 16), torch.ones(4, 16)), torch.ones(65, 8), torch.ones(64, 16))
torch.rnn_tanh_cell(torch.ones(4, 7), torch.ones(3, 16), torch.ones(16, 8), torch.ones(16, 16))
torch.rnn_tanh_cell(torch.ones(4, 8), torch.ones(3, 16), torch.ones(16, 8), torch.ones(16, 16))
torch.rnn_tanh_cell(torch.ones(4, 8), torch.ones(4, 15), torch.ones(16, 8), torch.ones(16, 16))
torch.rnn_tanh_cell(torch.ones(8), torch.ones(16), torch.ones(16, 8), torch.ones(16, 16))
torch.gru_cell(torch.ones(2, 4, 8), torch.ones(2, 4, 16), torch.ones(48, 8), torch.ones(48, 16))
torch.lstm_cell(torch.ones(4, 8), (torch.ones(4, 16), torch.ones(4, 15)), torch.ones(64, 8), torch.ones(64, 16))
torch.lstm_cell(torch.ones(4, 8), [torch.ones(4, 16)], torch.ones(64, 8), torch.ones(64, 16))
"""

MIXED_STATISTICS = """
m, v = torch.arange(3.0).half(), torch.ones(3).half(); y = F.instance_norm(torch.arange(12.0).view(1, 3, 4), m, v, None, None, True); y, m, v
m, v = torch.arange(3.0), torch.ones(3); y = F.instance_norm(torch.arange(12.0).double().view(1, 3, 4), m, v, None, None, False); y.dtype, m, v
m, v = torch.rand(3).double(), torch.ones(3).double(); y = F.instance_norm(torch.arange(12.0).bfloat16().view(1, 3, 4), m, v, None, None, True); y, v
F.instance_norm(torch.arange(12.0).bfloat16().view(1, 3, 4), None, None, torch.full((3,), 2.0), torch.ones(3), True)
x = torch.arange(12.0).half().view(1, 3, 4).requires_grad_(); w = torch.ones(3, requires_grad=True); F.instance_norm(x, None, None, w, None).square().sum().backward(); w.grad
F.instance_norm(torch.arange(12.0).view(1, 3, 4), torch.ones(3).half(), torch.ones(3).half(), torch.ones(3).half(), None, True)
F.instance_norm(torch.arange(12.0).view(1, 3, 4), None, None, torch.ones(3).half(), None, False)
"""

SPARSE_DATA = """
x = torch.eye(3).to_sparse(); x.data = torch.eye(3).to_sparse() * 2; x
x = torch.eye(3).to_sparse(); x.data = torch.eye(3)
x = torch.eye(3); x.data = torch.eye(3).to_sparse()
p = nn.Parameter(torch.eye(3).to_sparse()); p.data = torch.ones(2, 2).to_sparse().double(); p
p = nn.Parameter(torch.eye(2).to_sparse()); p.data = torch.ones(2, 2).to_sparse(); (p * 3).to_dense().sum().backward(); p.grad.to_dense()
m = nn.Linear(3, 2); m.weight = nn.Parameter(torch.eye(3)[:2].to_sparse()); m.double().weight
m = nn.Linear(3, 2); m.weight.grad = torch.ones(2, 3); m._apply(lambda t: t.to_sparse()); m.weight.layout, m.weight.requires_grad, m.weight.grad.layout, m.bias.layout
"""

VIEWS_IN_VMAP = """
x = torch.arange(1.0, 11).view(2, 5).requires_grad_(); b = x * x; v = b[0]; v.exp_(); torch.func.vmap(lambda g: torch.autograd.grad(v, x, g, retain_graph=True))(torch.ones(3, 5))
x = torch.arange(1.0, 11).view(2, 5).requires_grad_(); b = x * x; v = b[0]; b.exp_(); torch.func.vmap(lambda g: torch.autograd.grad(v, x, g, retain_graph=True))(torch.ones(3, 5))
x = torch.arange(5.0).requires_grad_(); b = x * 2; v = b[:3]; b.mul_(3); torch.func.vmap(torch.func.grad(lambda q: (q * v).sum()))(torch.ones(2, 3)).sum().backward(); x.grad
b = torch.arange(10.0).view(2, 5); v = b[0]; y = b + 1; b.add_(y); torch.func.vmap(lambda g: (y * g[0], v * g, b * g))(torch.ones(3, 5)), v
b = torch.arange(10.0).view(2, 5); v = b[0]; b.add_(1); torch.func.vmap(lambda g: (v * g, b.mul_(2), v + 0, v * g)[2:], out_dims=(None, 0))(torch.ones(3, 5)), b, v
torch.func.vmap(lambda x: (x, x), out_dims=(0,))(torch.ones(2, 3))
torch.func.vmap(lambda x: {"a": x}, out_dims=(1,))(torch.ones(2, 3))
torch.func.vmap(lambda x: 3, out_dims=(None,))(torch.ones(2, 3))
torch.func.vmap(lambda x: x, out_dims=(1,))(torch.ones(2, 3)), torch.func.vmap(lambda x: (x,), out_dims=(1,))(torch.ones(2, 3))
f = lambda x: (y := x * 2, z := y[0], y.mul_(x), z)[-1]; torch.func.vmap(f)(torch.arange(6.0).view(2, 3))
f = lambda x: (y := x * 2, z := y.view(-1), y.add_(1), (y, z))[-1]; torch.func.vmap(f)(torch.arange(8.0).view(2, 2, 2))
f = lambda x: (y := x * 2, z := y[0], y.mul_(x), z)[-1]; torch.func.vmap(torch.func.grad(f))(torch.arange(6.0).view(2, 3))
f = lambda x: (y := x * x, z := y[1:], y.mul_(x), z)[-1]; torch.func.vmap(lambda x, t: torch.func.jvp(f, (x,), (t,)))(torch.arange(6.0).view(2, 3), torch.ones(2, 3))
x = torch.arange(6.0).view(2, 3).requires_grad_(); f = lambda x: (y := x * 2, z := y[0], y.mul_(x), z)[-1]; torch.func.vmap(f)(x).sum().backward(); x.grad
x = torch.arange(6.0).view(2, 3); f = lambda x: (z := x[:2], w := x[1:], z.add_(1), w.mul_(2), (x, z, w))[-1]; torch.func.vmap(f)(x), x
"""

PROGRAMS = (INDEXING, VIEWS, OVERLAPS, AUTOGRAD, PLACES, HOOKS, HOOK_RESULTS, GRADIENT_DTYPES, NO_TENSORS, APART, STORAGES, PARTS, POOLS,
            MIXED, FACTORIES, NUMBERS, FACTORS, NUMPY_NUMBERS, OTHERS_OPERATORS, FLAT_WEIGHTS, OUTS,
            OUT_DTYPES, FOURIER, SIZES, BUFFERS, MADE, REDUCED, PRODUCT_OUTS, NOT_FINITE, FLOAT_SIZES, TRANSFORMS, INFINITE_MATRICES, SUMS_OF_SHORT_NUMBERS, FACTORS_IN_TENSORS,
            CONJUGATED_WINDOWS, STRICT, NOT_IMPLEMENTED, EMPTY, NEW_USERS, AFFINE_GRIDS, LAYER_ARGUMENTS, SPARSE_WEIGHTS, BOOLEAN_ALPHAS,
            MEMORY, KERNELS, SHORT_INDICES, PLAIN_FLAGS, EDGE_GRADIENTS, LAYER_INPUTS, CELLS, MIXED_STATISTICS, SPARSE_DATA, VIEWS_IN_VMAP)


@pytest.mark.parametrize("program", lines(*PROGRAMS))
def test_both_print_it(subject, oracle, program):
    assert outcome(subject, program) == outcome(oracle, program)


def test_warnings_name_the_users_line(subject):
    x = subject.ones(2, requires_grad=True) * 2
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        x.grad; line = inspect.currentframe().f_lineno  # noqa: B018, E702
        subject.arange(2)[subject.tensor([1, 0], dtype=subject.uint8)]
        subject.nn.functional.softmax(subject.ones(2, 2))
        subject.nn.functional.mse_loss(subject.ones(2), subject.ones(2, 1))
        subject.nn.functional.kl_div(subject.ones(2), subject.ones(2))
        subject.nn.functional.affine_grid(subject.ones(1, 2, 3), (1, 1, 2, 2))
        subject.nn.functional.grid_sample(subject.ones(1, 1, 2, 2), subject.ones(1, 2, 2, 2))
    assert [(w.filename, w.lineno - line) for w in caught] == [(__file__, n) for n in range(7)]


def test_warnings_name_the_users_line_where_functions_look_at_their_arguments(subject):
    importlib.import_module(f"{subject.__name__}.overrides")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        subject.nn.functional.dropout2d(subject.ones(2, 2)); line = inspect.currentframe().f_lineno  # noqa: B018, E702
        subject.nn.functional.upsample(subject.ones(1, 1, 2, 2), scale_factor=2)
        subject.tensor(subject.ones(2))
        subject.range(0, 3)
        subject.std(subject.ones(1))
        subject.nn.init.kaiming_uniform_(subject.ones(0, 2))
        subject.nn.Dropout2d()(subject.ones(2, 2))
    assert [(w.filename, w.lineno - line) for w in caught] == [(__file__, n) for n in range(7)]


@pytest.mark.parametrize("program", lines(OLD_NAMES))
def test_old_names_warn(subject, oracle, program):
    """Each says at first, and each time if so asked, what takes its place; the advice on how to rewrite a call is in other words."""
    found = []
    for torch in (subject, oracle):
        torch.set_warn_always(True)
        try:
            result, said = outcome(torch, program)
        finally:
            torch.set_warn_always(False)
        found.append((result, [re.split(r"release|\. In", text)[0] for text in said]))
    assert found[0] == found[1]


def test_old_names_warn_once_on_the_users_line(subject):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        subject.set_warn_always(True)
        subject.cross(subject.ones(3), subject.ones(3)); line = inspect.currentframe().f_lineno  # noqa: E702
        subject.ones(2).where(subject.ones(2, dtype=subject.uint8), subject.ones(2))
        subject.zeros(2).scatter_(0, subject.tensor([0, 0]), subject.ones(2), reduce="add")
        subject.set_warn_always(False)
        subject.cross(subject.ones(3), subject.ones(3))
        places = [(w.filename, w.lineno - line) for w in caught]
        assert places[:3] == [(__file__, 0), (__file__, 1), (__file__, 2)]
        several = len(caught)
        subject.cross(subject.ones(3), subject.ones(3))
        assert len(caught) == several
