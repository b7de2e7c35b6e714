"""Data behind an address, and in a file: what code that reads memory itself (ctypes, safetensors) finds there."""
import ctypes
import warnings

import numpy as np
import pytest
from same import caught, error, same


def read(t):
    size = t.numel() * t.element_size()
    data = np.ctypeslib.as_array(ctypes.cast(t.data_ptr(), ctypes.POINTER(ctypes.c_ubyte)), (size,))
    return data.view(t.numpy().dtype).tolist()


@same
def test_the_data_lies_at_its_address_and_stays_there(torch):
    x = torch.arange(6.0).reshape(2, 3)
    before, seen = x.data_ptr(), [read(x), read(x[1]), x.data_ptr() % 64]
    x.mul_(2)
    x[1, 1] = 9
    return *seen, read(x), x.data_ptr() == before, x[1].data_ptr() - before, read(x.t().contiguous())


def written(address, *numbers, kind=ctypes.c_float):
    (kind * len(numbers)).from_address(address)[:] = numbers


@same
def test_what_is_written_at_an_address_is_the_data(torch):
    """As functions in C write, called by ctypes (bitsandbytes on the CPU)."""
    x, turned, halves = torch.empty(4), torch.zeros(2, 3).t(), torch.zeros(2, dtype=torch.bfloat16)
    pictures, many, numbers = torch.zeros(1, 3, 2, 2).to(memory_format=torch.channels_last), torch.zeros(3000), torch.zeros(1, dtype=torch.complex64)
    written(x.data_ptr(), 1, 2, 3, 4)
    written(turned.data_ptr(), *range(6))
    written(pictures.data_ptr(), *range(12))
    written(many.data_ptr(), *range(3000))
    written(numbers.data_ptr(), 1, 2)
    written(halves.data_ptr(), 0x3f80, 0x4000, kind=ctypes.c_int16)
    storage = torch.zeros(2).untyped_storage()
    written(storage.data_ptr(), 5)
    return x, turned, pictures, many.sum(), numbers, halves, storage[3], storage.resizable(), x._version


@same
def test_views_and_their_base_see_what_is_written_at_an_address(torch):
    x, y, z = torch.zeros(6), torch.zeros(4), torch.zeros(3)
    part, whole = x[2:], y.view(2, 2)
    before = part * 1
    written(part.data_ptr(), 5, 6)
    written(y.data_ptr(), 1, 2, 3, 4)
    first, second = z.data_ptr(), z.data_ptr()
    written(first, 1, 2, 3)
    written(second, 7)
    seen = before, part.clone(), x.clone(), whole + 1, z + 1
    z += 1
    written(z.data_ptr() + 4, 9)
    array = z.numpy()
    array[2] = -1
    return *seen, z, array.tolist(), z.detach(), z.clone()


@same
def test_a_gradient_is_taken_at_what_was_written_at_an_address(torch):
    layer = torch.nn.Linear(2, 2, bias=False)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.5)
    written(layer.weight.data_ptr(), 1, 2, 3, 4)
    layer(torch.ones(1, 2)).pow(2).sum().backward()
    found = [layer.weight.grad.clone()]
    optimizer.step()
    found.append(layer.weight.detach().clone())
    written(layer.weight.data_ptr(), 1, 2)
    optimizer.step()
    return *found, layer.weight


@same
def test_the_array_that_numpy_gives_lies_at_the_address(torch):
    x, z = torch.arange(6.0).reshape(2, 3), torch.empty_strided((2, 3), (1, 2)).copy_(torch.arange(6.0).reshape(2, 3))
    where = x.data_ptr(), z.data_ptr()
    first, second = x.numpy(), z.numpy()
    first[0, 0] = 7
    memory = np.ctypeslib.as_array(ctypes.cast(z.data_ptr(), ctypes.POINTER(ctypes.c_float)), (6,)).tolist()
    return first.ctypes.data == where[0], second.ctypes.data == where[1], read(x), x, memory, second.strides


@same
def test_a_tensor_over_an_array_lies_where_the_array_does(torch):
    array = np.arange(4)
    t = torch.from_numpy(array)
    same_place = t.data_ptr() == array.ctypes.data
    array[1] = 5
    seen = read(t), read(t[1:])
    t.add_(1)
    return same_place, *seen, array.tolist(), read(t)


@same
def test_an_optimizer_step_leaves_the_address(torch):
    layer = torch.nn.Linear(2, 2)
    torch.nn.init.ones_(layer.weight)
    before = layer.weight.data_ptr()
    layer(torch.ones(1, 2)).sum().backward()
    torch.optim.SGD(layer.parameters(), lr=0.5).step()
    raw = ctypes.string_at(layer.weight.untyped_storage().data_ptr(), 4)
    return layer.weight.data_ptr() == before, read(layer.weight.detach()), raw


@same
def test_addresses_of_nothing(torch):
    grown = torch.ones(3)
    grown.data_ptr()
    grown.resize_(30).fill_(2.0)
    meta = torch.ones(3, device="meta")
    return read(grown), torch.empty(0).data_ptr(), meta.data_ptr(), meta.untyped_storage().data_ptr()


def _file(folder, torch):
    path = str(folder / torch.__name__)
    with open(path, "wb") as file:
        file.write(bytes(range(40)))
    return path


@same
def test_storages_of_files(torch, tmp_path):
    path, kind = _file(tmp_path, torch), torch.UntypedStorage
    storage = kind.from_file(path, False, 40)
    part = storage[8:16]
    a = torch.asarray(part, dtype=torch.uint8)
    numbers = a.view(torch.int16).reshape(2, 2)
    seen = storage.nbytes(), storage[3], part.tolist(), a.clone(), numbers.clone()
    a[0] = 99
    written = kind.from_file(path, True, 40)
    written[0] = 77
    with open(path, "rb") as file:
        bytes_ = file.read()
    new = kind.from_file(path + ".new", True, 8)
    new[1] = 7
    floats = torch.FloatStorage.from_file(path, False, 3)
    return *seen, a, bytes_, new.tolist(), floats.size(), kind.from_file(path).nbytes(), \
        error(storage.__getitem__, slice(0, 8, 2))


@same
def test_files_that_are_not_there_or_too_short(torch, tmp_path):
    path, kind = _file(tmp_path, torch), torch.UntypedStorage
    found = []
    for name, size in ((path, 80), (path + ".none", 4)):
        try:
            kind.from_file(name, False, size)
        except RuntimeError as e:
            found.append(str(e).replace(path, "PATH"))
    return found


@same
def test_tensors_of_storages(torch):
    x = torch.ones(3)
    return (torch.asarray(x.untyped_storage(), dtype=torch.float32), torch.asarray(x.storage()), torch.tensor(x.storage()),
            torch.asarray(x.untyped_storage()))


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
@same
def test_numpy_sees_a_storage_that_grew(torch, order):
    """`out=` of a part of it: whoever looks after the first finds an array there already."""
    x = torch.tensor([[1.43, 1.367, 1.138]])
    data = x.data
    part = data[:, 1:2]
    with warnings.catch_warnings(action="ignore"):  # that out= is resized
        torch.sin(data + 1, out=part)
    tensors = x, data, part
    return [(tensors[k].detach().numpy().round(4).tolist(), tensors[k].stride(), tensors[k].untyped_storage().nbytes()) for k in order]


@same
def test_an_array_that_nobody_else_holds(torch):
    """`from_numpy(np.array(image))`: views of it, copies and writes, beside one that is held by the array, a view of it or its buffer."""
    found = []
    for k in range(3):
        image = np.arange(24, dtype=np.uint8).reshape(2, 4, 3) + k
        alone, held = torch.from_numpy(np.array(image)), torch.from_numpy(image)
        part = image[1:]
        kept = torch.from_numpy(np.array(image).reshape(-1)[2:])
        buffer = bytearray(range(12))
        over = torch.frombuffer(buffer, dtype=torch.uint8)
        for t in (alone, held):
            view = t.view(2, 12).view(2, 4, 3).permute(2, 0, 1)
            planes = view.contiguous()
            image[0, 0] = 77
            part[0, 1] = 99
            view[0, 1] = 5
            found += [view, planes, planes.to(torch.float32).div(255), t, t.view(-1)[3:7], t._version]
        del image
        part[0, 2] = 55
        buffer[3] = 200
        kept[1] = 9
        found += [held.view(24).clone(), held[1], kept.view(11, 2).t(), over.view(3, 4)]
    return found


@same
def test_stacked_samples(torch):
    images = [torch.from_numpy(np.arange(12.0, dtype=np.float32).reshape(3, 4) + k) for k in range(70)]
    found = [torch.stack(images).sum(0), torch.stack(images, 1)[2], torch.stack(images, -1)[0], torch.stack([i[0, 0] for i in images]), torch.stack([i.t() for i in images])[3]]
    return found + [caught(torch.stack, [*images, torch.ones(4, 3)]), caught(torch.stack, [*images, torch.ones(2, 4)]), torch.as_tensor(((1, 2.5), (3, 4))),
                    torch.tensor([(1, 2), [3, 4]]), caught(torch.tensor, ((1, 2), (3,))), torch.tensor((0.5, 1, True))]


@same
def test_memory_that_grew_and_was_shared_for_a_while(torch):
    """An observer's buffers: resized, written in place, looked at through NumPy arrays that are gone afterwards, or are held for a round."""
    found = []
    for holds in (False, True):
        x, flat = torch.tensor([0], dtype=torch.int32), torch.zeros(2, 3)
        row, kept = flat[1], []
        for k in range(5):
            x.resize_((3,)).copy_(torch.tensor([1, 2, 3], dtype=torch.int32) + k)
            array = x.numpy()
            found += [x.min(), x.max(), array.copy(), x[1:]]
            array[0] = -k
            row += k
            seen = flat.numpy()
            seen[1, 2] = 10 * k
            row[0] = float(seen[1, 2]) + 1
            kept = [array, seen] if holds else []
            del array, seen
            found += [x.clone(), x[0], row.clone(), flat * 1, row.max(), x._version]
        found += [x, row, flat, [k.tolist() for k in kept]]
    return found
