"""Sobol sequences beside torch's."""
import importlib

import numpy as np
import pytest


@pytest.mark.parametrize("dimension,scramble", [(1, False), (3, False), (60, False), (1000, False), (1, True), (4, True), (50, True)])
def test_points(subject, oracle, dimension, scramble):
    def facts(torch):
        engine = importlib.import_module(f"{torch.__name__}.quasirandom").SobolEngine(dimension, scramble=scramble, seed=7)
        parts = [engine.draw(1), engine.draw(4), engine.fast_forward(5).draw(3), engine.draw(2, dtype=torch.float64), engine.reset().draw_base2(3), engine.draw_base2(3)]
        return [p.numpy() for p in parts], [str(p.dtype) for p in parts], engine.num_generated, repr(engine)
    mine, real = facts(subject), facts(oracle)
    for a, b in zip(mine[0], real[0]):
        np.testing.assert_array_equal(a, b)
    assert mine[1:] == real[1:]


def test_seeds_and_refusals(subject, oracle):
    def facts(torch):
        make, out = importlib.import_module(f"{torch.__name__}.quasirandom").SobolEngine, []
        torch.manual_seed(5)
        out.append(make(2, scramble=True).draw(3).tolist())
        for call in (lambda: make(0), lambda: make(21202), lambda: make(2).fast_forward(3).draw_base2(2)):
            with pytest.raises(ValueError) as error:
                call()
            out.append(type(error.value).__name__)
        return out
    assert facts(subject) == facts(oracle)
