"""Pools and convolutions with one thing wrong, and with two: the same error as torch's, in the same words."""
import itertools

import pytest


def outcome(f, *args):
    try:
        return tuple(f(*args).shape)
    except (RuntimeError, IndexError, NotImplementedError) as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"


def several(faults, pairs):
    """The names of one fault, and of two at different arguments."""
    yield from ((name,) for name in faults)
    if pairs:
        yield from ((a, b) for a, b in itertools.combinations(faults, 2) if faults[a][0] != faults[b][0])


def pool(torch, kind, n, faults):
    given = {"shape": (1, 3) + (8,) * n, "k": 3, "s": 1, "p": 0, "d": 1, "dtype": "float32", "divisor": None, **dict(faults)}
    x = torch.ones(given["shape"], dtype=getattr(torch, given["dtype"]))
    f = getattr(torch.nn.functional, f"{kind[:3]}_pool{n}d")
    if kind == "avg":
        return f(x, given["k"], given["s"], given["p"], **({} if n == 1 else {"divisor_override": given["divisor"]}))
    made = f(x, given["k"], given["s"], given["p"], given["d"], return_indices=kind == "max, indices")
    return made[0] if kind == "max, indices" else made


@pytest.mark.parametrize("kind", ["avg", "max", "max, indices"])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_pools(oracle, subject, n, kind):
    many = (1,) * (n + 1)
    faults = {"dim": ("shape", (4,) if n < 3 else (4, 4)), "dims": ("shape", (1, 1, 3) + (8,) * n), "empty": ("shape", (1, 3) + (0,) + (8,) * (n - 1)),
              "no channels": ("shape", (1, 0) + (8,) * n), "small": ("shape", (1, 3) + (2,) * n), "ks": ("k", many), "k0": ("k", 0), "k < 0": ("k", -1),
              "ss": ("s", many), "s0": ("s", 0), "s < 0": ("s", -1), "ps": ("p", many), "p < 0": ("p", -1), "p > k": ("p", 3), "int": ("dtype", "int32"),
              "bool": ("dtype", "bool"), "complex": ("dtype", "complex64")}
    faults |= {"ds": ("d", many), "d0": ("d", 0)} if kind != "avg" else {"divisor": ("divisor", 0)} if n > 1 else {}
    for names in several(faults, pairs=True):
        wrong = [faults[name] for name in names]
        here, there = (outcome(pool, torch, kind, n, wrong) for torch in (subject, oracle))
        assert here == there, names


def convolution(torch, n, transposed, faults):
    weight = (3, 4) if transposed else (4, 3)
    given = {"x": (1, 3) + (8,) * n, "w": weight + (3,) * n, "b": (4,), "s": 1, "p": 0, "d": 1, "g": 1, "op": 0, "x dtype": "float32", "w dtype": "float32",
             "b dtype": "float32", **dict(faults)}
    if "all" in given:
        given |= dict.fromkeys(("x dtype", "w dtype", "b dtype"), given["all"])
    x, w, b = (None if given[t] is None else torch.ones(given[t], dtype=getattr(torch, given[t + " dtype"])) for t in "xwb")
    if transposed:
        return getattr(torch.nn.functional, f"conv_transpose{n}d")(x, w, b, given["s"], given["p"], given["op"], given["g"], given["d"])
    return getattr(torch.nn.functional, f"conv{n}d")(x, w, b, given["s"], given["p"], given["d"], given["g"])


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_convolutions(oracle, subject, n, transposed):
    plane, many, weight = (8,) * n, (1,) * (n + 1), (3, 4) if transposed else (4, 3)
    faults = {"dim": ("x", (8,) * max(n - 1, 1)), "dims": ("x", (1, 1, 3) + plane), "channels": ("x", (1, 2) + plane), "small": ("x", (1, 3) + (2,) * n),
              "empty": ("x", (1, 3) + (0,) * n), "no channels": ("x", (1, 0) + plane), "w dim": ("w", (*weight, 3)[1:] + (3,) * (n - 1)),
              "w0": ("w", (0, weight[1]) + (3,) * n), "w1": ("w", (weight[0], 0) + (3,) * n), "k0": ("w", weight + (0,) * n), "b": ("b", (2,)),
              "b dim": ("b", (1, 4)), "s0": ("s", 0), "s < 0": ("s", -1), "ss": ("s", many), "ps": ("p", many), "p < 0": ("p", -1), "d0": ("d", 0),
              "ds": ("d", many), "g0": ("g", 0), "g2": ("g", 2), "g9": ("g", 9), "x dtype": ("x dtype", "float64"), "w dtype": ("w dtype", "float64"),
              "no bias": ("b", None), "int": ("all", "int64"), "bool": ("all", "bool")}
    if transposed:
        faults |= {"op": ("op", 1), "op < 0": ("op", -1), "large p": ("p", 20), "ops": ("op", many)}
    else:
        faults |= {"b dtype": ("b dtype", "float64"), "same": ("p", "same"), "valid": ("p", "valid"), "unknown": ("p", "foo"), "s2": ("s", 2)}
    apart = ({"w dim", "ss"}, {"w dim", "same"}, {"ds", "same"})  # torch's words for these name other numbers
    for names in several(faults, pairs=n == 2):
        if set(names) in apart:
            continue
        wrong = [faults[name] for name in names]
        here, there = (outcome(convolution, torch, n, transposed, wrong) for torch in (subject, oracle))
        assert here == there, names


def test_input_without_channels(oracle, subject):
    """The result has none either, and gradients are zero."""
    def grads(torch, dtype):
        layer = torch.nn.Conv1d(0, 4, 3, dtype=getattr(torch, dtype))
        x = torch.ones(2, 0, 5, dtype=layer.weight.dtype, requires_grad=True)
        y = layer(x)
        y.abs().sum().backward()
        return tuple(y.shape), [(tuple(t.grad.shape), t.grad.tolist(), str(t.grad.dtype)) for t in (x, layer.weight, layer.bias)]
    for dtype in ("float32", "complex64"):
        assert grads(subject, dtype) == grads(oracle, dtype)


@pytest.mark.parametrize("shape", [(1, 1, 2, 2, 2), (1, 1, 3, 2, 4), (2, 2, 2, 2)])
def test_windows_larger_than_the_image_in_three_dimensions(oracle, subject, shape):
    """Padding and ceil_mode do not help an average."""
    for kernel, stride, padding, ceil in itertools.product((3, 2, (4, 2, 2)), (1, 3), (0, 1), (False, True)):
        want, found = (outcome(torch.nn.functional.avg_pool3d, torch.ones(shape), kernel, stride, padding, ceil) for torch in (oracle, subject))
        assert want == found, (kernel, stride, padding, ceil)
