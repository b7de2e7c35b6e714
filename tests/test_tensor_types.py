"""The legacy tensor types and `Tensor.type`, against real torch."""

import array
import copy

import numpy as np
import pytest
import torch
from same import same

import torchlike


def make(t, maker):
    return getattr(t, maker) if maker != "new" else t.zeros(2).new


def message(f):
    try:
        return f()
    except Exception as error:
        return type(error).__name__, str(error)


CASES = {
    "nested": lambda t: t.LongTensor([[1, 2]]),
    "sizes": lambda t: t.LongTensor(2, 3).shape,
    "one size": lambda t: t.FloatTensor(5).shape,
    "empty": lambda t: t.LongTensor(),
    "Size": lambda t: t.LongTensor(t.Size([2])).shape,
    "truncates": lambda t: t.LongTensor([1.7, 2]),
    "float": lambda t: t.FloatTensor([1, 2]),
    "half": lambda t: t.HalfTensor([1, 2]),
    "bool": lambda t: t.BoolTensor([0, 1]),
    "tuple": lambda t: t.IntTensor((1, 2)),
    "range": lambda t: t.LongTensor(range(3)),
    "numpy": lambda t: t.FloatTensor(np.array([1, 2])),
    "tensor": lambda t: t.LongTensor(t.tensor([1, 2])),
    "other tensor": lambda t: t.LongTensor(t.tensor([1.0])),
    "str": lambda t: t.LongTensor("a"),
    "number": lambda t: t.LongTensor(1.5),
    "NumPy's sizes": lambda t: [made.shape for made in (t.FloatTensor(np.int64(3)), t.Tensor(np.int32(3)), t.LongTensor(np.int64(2), np.array(3)), t.zeros(2).new(np.int64(3)))],
    "items by number": lambda t: [make(array.array("f", [1, 2])) for make in (t.FloatTensor, t.Tensor, t.zeros(1).new)],
    **{f"no {what} for {maker}": (lambda t, maker=maker, data=data: message(lambda: make(t, maker)(data)))
       for maker in ("FloatTensor", "Tensor", "new")
       for what, data in (("number", 1.5), ("NumPy number", np.float32(3)), ("NumPy bool", np.bool_(True)), ("string", "a"), ("bytes", b"a"), ("set", {1}), ("dict", {0: 1}),
                          ("bool", True), ("negative size", -1))},
    **{f"{what} for {maker}": (lambda t, maker=maker, given=given: message(lambda: make(t, maker)(*given(t)).shape))
       for maker in ("LongTensor", "Tensor", "new")
       for what, given in (("sizes of tensors", lambda t: (t.tensor(2), t.tensor([3]), 4)), ("a number and a tensor", lambda t: (2, t.tensor(3, dtype=t.int32))),
                           ("a number and True", lambda t: (2, True)), ("a negative tensor", lambda t: (2, t.tensor(-1))), ("a number and a float", lambda t: (2, 3.5)),
                           ("a number and a tuple", lambda t: (2, (3,))))},
    **{f"{what} for {maker}": (lambda t, maker=maker, given=given: message(lambda: make(t, maker)(*given(t)))[0])
       for maker in ("LongTensor", "Tensor", "new")
       for what, given in (("a float and a number", lambda t: (2.0, 3)), ("a list and a number", lambda t: ([2], 3)), ("data and a number", lambda t: (t.tensor([1, 2]), 3)),
                           ("True and a number", lambda t: (True, 2)), ("a tensor of floats and a number", lambda t: (t.tensor(2.0), 3)))},
    "by name": lambda t: [made.shape if i else made.tolist() for make in (t.LongTensor, t.Tensor, t.zeros(1).new)
                          for i, made in enumerate((make(data=[2, 3]), make(size=(2, 3)), make(size=()), make(size=[2])))],
    "by name and by position": lambda t: message(lambda: t.Tensor(2, size=(3,)))[0],
    "no CUDA": lambda t: t.cuda.LongTensor(3),
    "data without CUDA": lambda t: t.cuda.FloatTensor([1.0]),
    "default without CUDA": lambda t: t.set_default_tensor_type(t.cuda.FloatTensor),
    "default by name without CUDA": lambda t: t.set_default_tensor_type("torch.cuda.HalfTensor"),
    "class": lambda t: (t.LongTensor.__name__, t.LongTensor.__module__, type(t.LongTensor).__name__),
    "dtype": lambda t: str(t.DoubleTensor.dtype),
    "is": lambda t: [isinstance(t.tensor(1), c) for c in (t.LongTensor, t.FloatTensor, t.cuda.LongTensor)],
    "is, subclass": lambda t: isinstance(t.nn.Parameter(t.ones(1)), t.FloatTensor),
    "no subclass": lambda t: issubclass(t.FloatTensor, t.Tensor),
    "name": lambda t: [t.ones(1, dtype=d).type() for d in (t.bool, t.bfloat16, t.complex64, t.float64, t.uint16)],
    "meta": lambda t: t.ones(1, device="meta").type(),
    "to dtype": lambda t: t.tensor([1]).type(t.float),
    "to name": lambda t: t.tensor([1]).type("torch.DoubleTensor"),
    "to class": lambda t: t.tensor([1.5]).type(t.LongTensor),
    "to itself": lambda t: (lambda x: x.type(t.float) is x)(t.ones(2)),
    "gradient": lambda t: t.ones(2, requires_grad=True).type(t.float64).requires_grad,
    "bad name": lambda t: t.tensor(1).type("x"),
    "dtype's name": lambda t: t.tensor(1).type("torch.float32"),
    "Python type": lambda t: t.tensor(1).type(float),
    "number as type": lambda t: t.tensor(1).type(3),
    "module": lambda t: t.nn.Linear(1, 1).type(t.DoubleTensor).weight.dtype,
    "shares": lambda t: (lambda x, y: (y.add_(1), x)[1])(*(lambda x: (x, t.LongTensor(x)))(t.tensor([1, 2]))),
}


def outcome(f, t):
    try:
        return repr(f(t))
    except Exception as error:
        return type(error).__name__
    finally:
        t.set_default_tensor_type("torch.FloatTensor")  # a PyTorch built with CUDA takes one of its types, also without a GPU


@pytest.mark.parametrize("name", list(CASES))
def test_legacy_types_are_torch_s(name):
    assert outcome(CASES[name], torchlike) == outcome(CASES[name], torch)


@pytest.mark.parametrize("bad", ["x", float, 3])
def test_the_error_of_type_is_torch_s(bad):
    messages = []
    for t in (torch, torchlike):
        with pytest.raises((ValueError, TypeError)) as caught:
            t.tensor(1).type(bad)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


@same
def test_dict_holds_what_the_user_stored(torch):
    found = []
    for t in (torch.ones(2), torch.nn.Parameter(torch.ones(2)), torch.ones(2, requires_grad=True) * 2, torch.ones(3)[1:], torch.ones(2).relu_()):
        t.first = 1
        t.__dict__["second"] = 2
        t.__dict__.update(third=3)
        vars(t).pop("first")
        found.append((dict(t.__dict__), t.second, t.third, hasattr(t, "first"), torch.nn.Parameter(t.detach()).__dict__))
        found.append((t.__dict__.pop("third"), t.__dict__.pop("third", None), hasattr(t, "third")))
        with pytest.raises(KeyError):
            t.__dict__.pop("third")
        t.__dict__ = {"fourth": 4}
        found.append((vars(t), t.fourth, hasattr(t, "second"), t + 0))
    found.append([t.__dict__ for t in (torch.nn.Buffer(torch.ones(1)), torch.nn.UninitializedParameter(), torch.eye(2).to_sparse(), torch.ones(2, device="meta"))])
    return [tuple(dict(x) if isinstance(x, dict) else x for x in row) if isinstance(row, tuple) else [dict(x) for x in row] for row in found]


@same
def test_dict_of_a_class_with_a_plain_base_first(torch):
    class Noted:
        def __init__(self):
            self.note = [1]

    class NotedTensor(Noted, torch.Tensor):
        def __new__(cls, x):
            return x.as_subclass(cls)

        def __init__(self, x):
            super().__init__()

    class Below(NotedTensor):
        pass
    found = []
    for cls in NotedTensor, Below:
        t, other = cls(torch.ones(2)), cls(torch.zeros(2))
        other.__dict__ = copy.deepcopy(t.__dict__)
        other.__dict__.update(more=2)
        found.append((dict(t.__dict__), dict(vars(other)), other.note is t.note, other.tolist(), (other + t).tolist()))
    return found


@same
def test_legacy_constructors_do_not_follow_the_default_device(torch):
    with torch.device("meta"):
        made = torch.Tensor(2), torch.Tensor([1.0]), torch.Tensor(), torch.FloatTensor(3), torch.IntTensor([1]), torch.FloatTensor([2.0])
        return [t.device for t in (*made, torch.empty(2))]


@pytest.mark.parametrize("name", ["FloatTensor", "LongTensor", "cuda.FloatTensor"])
def test_nothing_derives_from_a_type(name):
    said = []
    for t in (torch, torchlike):
        with pytest.raises(TypeError) as error:
            type("Mine", (eval(f"t.{name}", {"t": t}),), {})
        said.append(str(error.value))
    assert said[0] == said[1]
