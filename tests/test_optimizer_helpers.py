"""What libraries' own optimizers take from torch.optim.optimizer, as in real torch."""
import importlib

import pytest
import torch as real

import torchlike as ours


def parts(torch):
    return importlib.import_module(f"{torch.__name__}.optim.optimizer")


def same(case):
    want, got = case(real), case(ours)
    assert got == want, f"\n torch     {want}\n torchlike {got}"


def shown(x):
    if isinstance(x, (real.Tensor, ours.Tensor)):
        return x.tolist()
    if isinstance(x, dict):
        return sorted((str(k), shown(v)) for k, v in x.items())
    return [shown(y) for y in x] if isinstance(x, (list, tuple)) else str(x)


def test_questions():
    def case(torch):
        o = parts(torch)
        p, q, z = torch.nn.Parameter(torch.ones(2)), torch.ones(1, dtype=torch.int64), torch.ones(2, dtype=torch.complex64)
        out = [o._get_value(torch.tensor(3.5)), o._get_value(2), o._get_scalar_dtype(), o._get_scalar_dtype(True), o._stack_if_compiling([p, p])]
        out += [o._get_capturable_supported_devices(), o._get_capturable_supported_devices(supports_xla=False)]
        out += [o._default_to_fused_or_foreach(params, differentiable, use_fused) for params in ([p, None], [q], [z], [])
                for differentiable in (False, True) for use_fused in (False, True)]
        for x, cuda_unsupported in ((p, False), (q, False), (q, True), (z, True)):
            try:
                out.append(o._device_dtype_check_for_fused(x, cuda_unsupported))
            except RuntimeError as e:
                out.append(str(e))
        torch.set_default_dtype(torch.float64)
        out += [o._get_scalar_dtype(), o._get_scalar_dtype(True)]
        torch.set_default_dtype(torch.float32)
        out.append(torch.optim.Optimizer._group_tensors_by_device_and_dtype([[p, q, p], [p, None, p]], True))
        return shown(out)
    same(case)


def test_views_of_complex_parameters():
    def case(torch):
        params, grads = [torch.ones(2, dtype=torch.complex64), torch.ones(2)], [torch.full((2,), 1 + 2j), torch.zeros(2)]
        whole = params[0]
        parts(torch)._view_as_real(params, grads)
        params[0].add_(grads[0])
        return [x.tolist() for x in (*params, *grads, whole)]
    same(case)


@pytest.mark.parametrize("compiled", [False, True])
def test_an_optimizer_of_ones_own(compiled):
    """In the shape of axolotl's ADOPT: counts of steps in tensors, groups, functions of lists."""
    def case(torch):
        o = parts(torch)

        @o._disable_dynamo_if_unsupported()
        def updated(params, grads, state_steps, lr):
            groups = torch.optim.Optimizer._group_tensors_by_device_and_dtype([params, grads, state_steps])
            for (some, theirs, steps), _ in groups.values():
                torch._foreach_add_(steps, 1)
                sizes = [o._get_value(step) for step in steps]
                torch._foreach_add_(some, torch._foreach_mul(theirs, [-lr / size for size in sizes]))

        class Own(torch.optim.Optimizer):
            __doc__ = "Steps.\n" + o._params_doc + o._foreach_doc + o._maximize_doc + o._capturable_doc + o._differentiable_doc + o._fused_doc

            def __init__(self, params, lr):
                super().__init__(params, {"lr": lr, "differentiable": False})

            @o._use_grad_for_differentiable
            def step(self):
                for group in self.param_groups:
                    params = [p for p in group["params"] if p.grad is not None]
                    for p in params:
                        self.state[p].setdefault("step", torch.zeros((), dtype=o._get_scalar_dtype()))
                    updated(params, [p.grad for p in params], [self.state[p]["step"] for p in params], group["lr"])
        torch.manual_seed(0)
        model = torch.nn.Linear(3, 2)
        optimizer = Own(model.parameters(), 0.5)
        step = optimizer.step if not compiled or torch is real else torch.compile(optimizer.step)
        for _ in range(4):
            optimizer.zero_grad()
            model(torch.ones(4, 3)).square().mean().backward()
            step()
        return [pytest.approx(p.flatten().tolist(), rel=1e-5) for p in model.parameters()] if torch is real else [p.flatten().tolist() for p in model.parameters()]
    same(case)
