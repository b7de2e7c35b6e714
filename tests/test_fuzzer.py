"""torch.utils.benchmark's Fuzzer beside PyTorch's: the same parameters and tensors from the same seed."""
from importlib import import_module

import numpy as np
import pytest
from same import error, same


def parameters(b):
    return [b.FuzzedParameter("n", 2, 40, "loguniform"), [b.FuzzedParameter("m", 1, 20, "uniform"), b.FuzzedParameter("step", 1, 3, "uniform")],
            b.FuzzedParameter("dim", 1, 3, "uniform", strict=True), b.FuzzedParameter("scale", 0.5, 1.5, "uniform")]


@same
def test_parameters_and_tensors(torch):
    b = import_module(f"{torch.__name__}.utils.benchmark")
    fuzzer = b.Fuzzer(parameters(b), [b.FuzzedTensor("x", ("n", "m", 4), ("step", 2), dim_parameter="dim", min_elements=8, max_elements=500),
                                      b.FuzzedTensor("y", ("m", "n"), probability_contiguous=0.1, dtype=torch.int64, max_allocation_bytes=4000)],
                      [lambda p: p["n"] > p["m"]], seed=5)
    return [(tensors, {name: {**about, "order": list(map(int, about["order"])), "dtype": about["dtype"].split(".")[-1]} for name, about in properties.items()}, params,
             [t.stride() for t in tensors.values()]) for tensors, properties, params in fuzzer.take(12)], fuzzer.rejection_rate


@same
def test_tensors_made_by_the_program(torch):
    b = import_module(f"{torch.__name__}.utils.benchmark")
    tensor = b.FuzzedTensor("x", ("m",), tensor_constructor=lambda size, dtype, scale, **params: torch.full(size, scale, dtype=dtype), dtype=torch.float64)
    return [tensors for tensors, _, _ in b.Fuzzer(parameters(b), [tensor], seed=1).take(3)]


@same
def test_sparse_tensors(torch):
    b = import_module(f"{torch.__name__}.utils.benchmark")
    given = [b.FuzzedParameter("n", 3, 20, "uniform"), b.FuzzedParameter("density", 0.1, 0.5, "uniform"), b.FuzzedParameter("sparse_dim", 1, 2, "uniform"),
             b.FuzzedParameter("coalesced", 0, 1, "uniform")]
    fuzzer = b.Fuzzer(given, [b.FuzzedSparseTensor("x", ("n", 4, 3), sparse_dim="sparse_dim", density="density", coalesced="coalesced")], seed=2)
    return [(tensors["x"].to_dense(), tensors["x"]._nnz(), {**about["x"], "dtype": None, "shape": tuple(about["x"]["shape"])}) for tensors, about, _ in fuzzer.take(6)]


@same
def test_what_is_refused(torch):
    b = import_module(f"{torch.__name__}.utils.benchmark")
    never = b.Fuzzer(parameters(b), [b.FuzzedTensor("x", ("n",), min_elements=1000)], seed=0)
    return [error(b.FuzzedParameter, "n", 1, 2, "normal"), error(b.FuzzedParameter, "n", 1, 2), error(b.FuzzedParameter, "n", distribution={1: -0.5, 2: 1.5}),
            error(b.Fuzzer, parameters(b), [b.FuzzedTensor("n", (2,))]), error(lambda: next(never.take(1))), never.rejection_rate, repr(b.ParameterAlias("a"))]


def test_values_by_probability_and_aliases(subject):
    """PyTorch 2.13 refuses every distribution that adds up to one: its check is the wrong way round."""
    b = import_module(f"{subject.__name__}.utils.benchmark")
    given = [b.FuzzedParameter("a", 2, 9, "uniform"), b.FuzzedParameter("b", distribution={1: 0.25, b.ParameterAlias("c"): 0.75}),
             b.FuzzedParameter("c", distribution={b.ParameterAlias("a"): 1.0})]
    found = [params for _, _, params in b.Fuzzer(given, [b.FuzzedTensor("x", ("a", "b"))], seed=3).take(400)]
    assert all(p["c"] == p["a"] and p["b"] in (1, p["a"]) for p in found)
    assert 0.2 < np.mean([p["b"] == 1 for p in found]) < 0.3
    with pytest.raises(AssertionError, match="not normalized"):
        b.FuzzedParameter("b", distribution={1: 0.5, 2: 0.4})
    loop = [b.FuzzedParameter("a", distribution={b.ParameterAlias("b"): 1.0}), b.FuzzedParameter("b", distribution={b.ParameterAlias("a"): 1.0})]
    with pytest.raises(ValueError, match="cycle"):
        next(b.Fuzzer(loop, [], seed=0).take(1))


def test_where_libraries_import_from(subject, oracle):
    theirs = import_module(f"{oracle.__name__}.utils.benchmark.utils")
    for torch in (subject, oracle):
        b = import_module(f"{torch.__name__}.utils.benchmark")
        for module in ("common", "compare", "fuzzer", "timer", "sparse_fuzzer"):
            found = import_module(f"{torch.__name__}.utils.benchmark.utils.{module}")
            assert getattr(b.utils, module) is found
            for name in vars(vars(theirs)[module]).get("__all__", ("FuzzedSparseTensor",)):
                assert getattr(found, name) is getattr(b, name)
        assert b.timer() <= b.timer()
