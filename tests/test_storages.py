"""Storages from buffers, and where files say that storages lie, beside real torch."""
import numpy as np
import pytest
import torch as oracle

import torchlike as subject

BUFFERS = """t.ByteStorage.from_buffer(b'abcd'); t.ByteStorage.from_buffer(b'abcd', count=2, offset=1); t.FloatStorage.from_buffer(b'abcd')
t.FloatStorage.from_buffer(b'abcd', 'big'); t.FloatStorage.from_buffer(b'abcd', 'native'); t.FloatStorage.from_buffer(b'abcde', 'little')
t.FloatStorage.from_buffer(b'abcd', 'odd'); t.IntStorage.from_buffer(bytearray(b'abcdefgh'), byte_order='little', offset=4); t.ByteStorage.from_buffer(b'')
t.ByteStorage.from_buffer(b'abc', offset=4); t.ByteStorage.from_buffer(b'abc', count=4); t.ByteStorage.from_buffer('abc'); t.ByteStorage.from_buffer(b'abc', offset=-1)
t.UntypedStorage.from_buffer(b'abcd', byte_order='native', dtype=t.float32); t.UntypedStorage.from_buffer(b'abcd', dtype=t.uint8); t.BoolStorage.from_buffer(b'12', 'little')
t.TypedStorage.from_buffer(b'abcd', dtype=t.float32, byte_order='little'); t.TypedStorage.from_buffer(b'abcd'); t.ByteStorage.from_buffer(b'abcd', 'little', 1)
t.HalfStorage.from_buffer(b'abcd', 'big'); t.BFloat16Storage.from_buffer(b'abcd', 'little'); t.LongStorage.from_buffer(b'abcdefgh' * 2, 'little', offset=3)
t.ByteTensor(t.ByteStorage.from_buffer(b'ab')); t.FloatTensor(t.ByteStorage.from_buffer(b'ab'))
t.tensor(t.FloatStorage(np.int16(3)).size()); t.tensor(t.UntypedStorage(np.int64(2)).size()); t.FloatStorage(np.float32(3))
t.serialization.default_restore_location(t.ones(2).untyped_storage(), 'cpu')"""


@pytest.mark.parametrize("text", [x.strip() for x in BUFFERS.replace("\n", ";").split(";")])
@pytest.mark.filterwarnings("ignore")
def test_from_buffer(text):
    def answer(t):
        try:
            made = eval(text, {"t": t, "np": np})
        except Exception as error:
            return type(error).__name__
        return type(made).__name__, made.tolist(), str(getattr(made, "dtype", ""))
    assert answer(subject) == answer(oracle)


@pytest.mark.filterwarnings("ignore")
def test_a_tensor_over_a_storage_shares_it():
    for t in (oracle, subject):
        storage = t.FloatStorage([1.0, 2.0])
        x = t.FloatTensor(storage)
        x[0] = 7
        assert storage.tolist() == [7, 2] and x.untyped_storage().data_ptr() == storage.untyped().data_ptr()


@pytest.mark.filterwarnings("ignore")
def test_locations():
    for t in (oracle, subject):
        storage = t.ones(2).untyped_storage()
        assert t.serialization.location_tag(storage) == "cpu" and t.serialization.default_restore_location(storage, "cpu") is storage
        with pytest.raises(RuntimeError):
            t.serialization.default_restore_location(storage, "cuda:0")
        with pytest.raises(RuntimeError, match="don't know how to restore"):
            t.serialization.default_restore_location(storage, "elsewhere")


@pytest.mark.filterwarnings("ignore")
def test_storages_in_other_dtypes():
    answers = []
    for t in (oracle, subject):
        raw, typed = t.tensor([1.5, 2.0]).untyped_storage(), t.tensor([1.5, 0.0]).storage()
        names = ("short", "bool", "complex_float", "complex_double", "float8_e5m2", "float8_e4m3fn")
        answers.append([[(str(made.dtype), [complex(n) for n in made.tolist()]) for made in (getattr(raw, name)(), getattr(typed, name)())] for name in names])
        answers[-1] += [raw.resizable(), raw.type(), raw.new().nbytes(), typed.resizable(), typed.is_pinned(), typed.pickle_storage_type()]
    assert answers[0] == answers[1]


def _grown_by_set(torch):
    a, b = torch.arange(4.0), torch.empty(0)
    b.set_(a.untyped_storage(), 2, (2, 3))
    b.fill_(1)[1, 2] = 7
    return a, b, a.untyped_storage().nbytes(), b.stride()


def _grown_by_set_of_a_tensor(torch):
    a, b = torch.arange(4.0), torch.empty(0)
    b.set_(a, 1, (2,), (5,))
    a.mul_(2)
    return a, b[0], a.untyped_storage().nbytes(), b.stride()


def _grown_storage(torch):
    a = torch.arange(4.0)
    memory, v = a.untyped_storage(), a[1:3]
    memory.resize_(32)
    v.fill_(9)
    b = torch.empty(0).set_(memory, 0, (8,))
    b[4:] = 5
    return a, v, b, memory.nbytes()


def _gaps_in_another_dtype(torch):
    a = torch.arange(6, dtype=torch.int32)
    b = torch.empty(0, dtype=torch.int16).set_(a.untyped_storage(), 1, (2, 3), (1, 3))
    b[0, 0] = -1
    return a, b


@pytest.mark.parametrize("program", [_grown_by_set, _grown_by_set_of_a_tensor, _grown_storage, _gaps_in_another_dtype])
def test_windows_of_storages(subject, oracle, program):
    assert str(program(subject)) == str(program(oracle))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("make", [lambda t: t.zeros(4, 5, device="meta").storage(), lambda t: t.TypedStorage(3, dtype=t.int16, device="meta"),
                                  lambda t: t.TypedStorage(device="meta", dtype=t.float32), lambda t: t.UntypedStorage(8, device="meta")])
def test_without_data_have_nothing_to_read(make):
    def answer(f, s):
        try:
            return f(s)
        except Exception as error:
            return type(error).__name__, str(error)
    for look in (lambda s: s[0], lambda s: s.untyped()[0], lambda s: s.nbytes(), lambda s: s.size(), lambda s: s.data_ptr(), lambda s: s.untyped().tolist()):
        assert answer(look, make(subject)) == answer(look, make(oracle))


def test_set_to_itself_changes_nothing():  # geoopt's samplers do so at each step, which took ever longer
    for t in (oracle, subject):
        x = t.arange(6.0)
        view = x[1:3]
        for _ in range(3):
            assert x.set_(x) is x and view.set_(view.expand(2)) is view
        view.mul_(10)
        assert x.tolist() == [0, 10, 20, 3, 4, 5] and view.tolist() == [10, 20]
        x.set_(x.expand(6)[:3])
        assert x.tolist() == [0, 10, 20]
    y = subject.arange(3.0)
    y.set_(y.expand(3))
    before = len(y._chain)
    for _ in range(5):
        y.set_(y.expand(3))
    assert len(y._chain) == before
