"""files of 16 dtypes byte for byte, slices, metadata, errors, models with tied weights"""

import hashlib

import torch
from safetensors import safe_open
from safetensors.torch import load, load_file, load_model, save, save_file, save_model
from torch import nn

FLOATS = ("float32", "float64", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "complex64")
INTEGERS = ("int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64", "bool")
FILE = "tensors.safetensors"


def digest(data):
    return f"{len(data)} bytes, {hashlib.md5(data).hexdigest()}"


def refuse(tensors):
    try:
        save_file(tensors, "refused.safetensors")
    except (RuntimeError, ValueError) as error:
        print(type(error).__name__, str(error)[:60])
    else:
        print("saved")


torch.manual_seed(0)
tensors = {name: (4 * torch.randn(2, 3)).to(getattr(torch, name)) for name in FLOATS}
tensors |= {name: torch.randint(0, 2, (2, 3)).to(getattr(torch, name)) for name in INTEGERS}
tensors |= {"scalar": torch.tensor(3.5), "empty": torch.empty(0, 3)}
save_file(tensors, FILE, metadata={"format": "pt"})
print("file", digest(open(FILE, "rb").read()))
for name, tensor in load_file(FILE).items():
    print(name, tensor.dtype, tensor)
with safe_open(FILE, framework="pt", device="cpu") as file:
    print(file.metadata(), sorted(file.keys()))
    part = file.get_slice("float32")
    print(part.get_shape(), part.get_dtype(), part[:1], part[:, 1:], part[0])
data = save({"order": torch.arange(4)})
print("bytes", digest(data), load(data))

x = torch.ones(4)
refuse({"a": x, "b": x})
refuse({"a": x[:2], "b": x[2:]})
refuse({"a": torch.ones(2, 3).t()})
refuse({"a": [1]})

models = [nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3)) for _ in range(2)]
for model in models:
    model[1].weight = model[0].weight
save_model(models[0], "model.safetensors")
print("missing, unexpected:", load_model(models[1], "model.safetensors"), sorted(load_file("model.safetensors")))
loss = models[1](torch.ones(2, 3)).sum()
loss.backward()
print("loss", loss, "gradient", models[1][0].weight.grad)
