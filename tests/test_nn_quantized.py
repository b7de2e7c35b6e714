"""torch.nn.quantized's modules of plain arithmetic, beside real torch."""
import importlib

import pytest


@pytest.mark.parametrize("place", ["nn.quantized", "ao.nn.quantized"])
def test_float_functional(subject, oracle, place):
    """Results, gradients, what the observer sees, how it prints, and that it cannot be called."""
    def facts(torch):
        quantized, out = importlib.import_module(f"{torch.__name__}.{place}"), []
        for cls in (quantized.FloatFunctional, quantized.FXFloatFunctional):
            f, seen = cls(), []
            if hasattr(f, "activation_post_process"):
                f.activation_post_process = torch.nn.ReLU()
                f.activation_post_process.register_forward_hook(lambda m, args, y, seen=seen: seen.append(list(y.shape)))
            x = torch.tensor([[1.0, -2.0], [3.0, 0.5]], requires_grad=True)
            made = [f.add(x, x), f.mul(x, x), f.add_scalar(x, 2.0), f.mul_scalar(x, -3.0), f.cat([x, x], 1), f.cat([x, x]), f.add_relu(x, x), f.matmul(x, x)]
            sum(y.sum() for y in made).backward()
            with pytest.raises(RuntimeError) as error:
                f(x)
            out += [[y.tolist() for y in made], x.grad.tolist(), seen, repr(f), str(error.value), list(f.state_dict())]
        return out
    assert facts(subject) == facts(oracle)
