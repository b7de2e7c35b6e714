"""What libraries' own optimizers take from torch.optim.optimizer, as in real torch."""
import copy
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


@pytest.mark.parametrize("name, options", [("SGD", {"momentum": 0.9}), ("Adam", {}), ("AdamW", {"amsgrad": True}), ("Adagrad", {})])
def test_parameters_and_state_for_a_block(name, options):
    """A step changes what was handed in, numbers and tensors of the state included, and nothing of the optimizer's own."""
    def case(torch):
        torch.manual_seed(0)
        layers = [torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)]
        optimizer = getattr(torch.optim, name)([{"params": layers[0].parameters()}, {"params": layers[1].parameters(), "lr": 0.2}], lr=0.1, **options)
        for _ in range(2):
            layers[1](layers[0](torch.ones(3, 2))).square().sum().backward()
            optimizer.step()
        other = copy.deepcopy(optimizer.state_dict())
        other["param_groups"][0]["lr"] = 0.5
        params = {str(i): torch.nn.Parameter(torch.full_like(p, 0.3)) for i, p in enumerate(p for layer in layers for p in layer.parameters())}
        for p in params.values():
            p.grad = torch.ones_like(p)
        own = [p for group in optimizer.param_groups for p in group["params"]]
        before = shown([own, optimizer.state_dict()["state"]])
        with torch.optim.swap_in_optimizer_params_and_state(optimizer, params, other):
            optimizer.step()
            inside = [optimizer.param_groups[0]["params"][0] is params["0"], optimizer.param_groups[0]["lr"], len(optimizer.state)]
            optimizer.zero_grad()
        after = [p for group in optimizer.param_groups for p in group["params"]]
        assert shown([after, optimizer.state_dict()["state"]]) == before and all(a is b for a, b in zip(own, after))
        return [[[round(x, 3) for x in p.flatten().tolist()] for p in params.values()], inside, [p.grad is None for p in params.values()], optimizer.param_groups[0]["lr"],
                [[k, [round(x, 3) for x in v.flatten().tolist()] if isinstance(v, torch.Tensor) else v] for s in other["state"].values() for k, v in sorted(s.items())]]
    same(case)


def test_blocks_that_are_refused():
    def case(torch):
        p = torch.nn.Parameter(torch.ones(2))
        optimizer, said = torch.optim.Adam([p]), []

        def attempt(params, state):
            with pytest.raises(RuntimeError) as refused, torch.optim.swap_in_optimizer_params_and_state(optimizer, params, state):
                pass
            said.append(str(refused.value))
        attempt({}, {})
        p.grad = torch.ones(2)
        optimizer.step()
        good = optimizer.state_dict()
        group = good["param_groups"][0]
        for state in (3, {}, {"state": {p: {}}}, {"state": {0: 3}}, {"state": {}}, {"state": {}, "param_groups": []}, {"state": {}, "param_groups": [3]},
                      {"state": {}, "param_groups": [{}]}, {"state": {}, "param_groups": [{**group, "params": [0, 1]}]},
                      {"state": {}, "param_groups": [{**group, "more": 1}]}, {**good, "state": {5: {}}}):
            attempt({"p": p}, state)
        attempt({}, good)
        return said
    same(case)


def test_functions_of_overrides_in_nn_functional():
    def case(torch):
        class Mine(torch.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return "taken"
        f, x, y = torch.nn.functional, torch.ones(1).as_subclass(Mine), torch.ones(1)
        return [f.has_torch_function((y, x)), f.has_torch_function((y,)), f.has_torch_function_unary(x), f.has_torch_function_variadic(y, y),
                f.handle_torch_function(torch.sin, (x,), x)]
    same(case)
