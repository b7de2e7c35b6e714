"""Small inputs for the public programs: a stand-in torchvision, a timm driver, and data files, all written by us.

Real torchvision needs torch's own C++ library, so it can run under neither this project nor a machine without torch.
What the programs need of it is small: MNIST as a dataset of PIL images, `ToTensor`, `Normalize`, `Compose`. Here MNIST
is scikit-learn's real handwritten digits, enlarged to 28x28. For timm the names it imports exist as classes that
refuse to be built.
"""

import pickle
import textwrap
from pathlib import Path

import numpy as np

TEXT = Path(__file__).resolve().parent.parent / "examples" / "data" / "shakespeare.txt"

_TORCHVISION = {
    "__init__.py": """
        from torchvision import datasets, ops, transforms, utils

        __version__ = "0.28.0"
    """,
    "_absent.py": """
        def absent(name):
            def refuse(self, *args, **kwargs):
                raise RuntimeError(f"the stand-in torchvision has no {name}")

            return type(name, (), {"__init__": refuse})
    """,
    "datasets.py": """
        import numpy as np
        from PIL import Image
        from sklearn.datasets import load_digits
        from torch.utils.data import Dataset

        from torchvision._absent import absent


        class MNIST(Dataset):
            def __init__(self, root, train=True, transform=None, target_transform=None, download=False):
                digits = load_digits()
                part = slice(0, 640) if train else slice(1297, 1797)
                pixels = (digits.images[part] / 16 * 255).astype(np.uint8)
                pixels = pixels.repeat(3, axis=1).repeat(3, axis=2)
                self.data = np.pad(pixels, ((0, 0), (2, 2), (2, 2)))
                self.targets = digits.target[part]
                self.transform = transform

            def __len__(self):
                return len(self.data)

            def __getitem__(self, index):
                image = Image.fromarray(self.data[index])
                return (image if self.transform is None else self.transform(image)), int(self.targets[index])


        def __getattr__(name):
            if name.startswith("_"):
                raise AttributeError(name)
            return absent(name)
    """,
    "ops/__init__.py": "from torchvision.ops import misc\n",
    "ops/misc.py": """
        import torch


        class FrozenBatchNorm2d(torch.nn.Module):
            def __init__(self, num_features, eps=1e-5):
                raise RuntimeError("the stand-in torchvision has no FrozenBatchNorm2d")
    """,
    "utils.py": """
        def save_image(tensor, path, **options):  # nobody looks at the picture, but its values are needed
            open(path, "wb").write(tensor.detach().numpy().tobytes())
    """,
    "transforms/__init__.py": """
        import numpy as np
        import torch

        from torchvision._absent import absent
        from torchvision.transforms import functional
        from torchvision.transforms.functional import InterpolationMode


        class Compose:
            def __init__(self, transforms):
                self.transforms = transforms

            def __call__(self, image):
                for transform in self.transforms:
                    image = transform(image)
                return image


        class ToTensor:
            def __call__(self, image):
                pixels = np.array(image, np.uint8, copy=True)
                pixels = pixels[:, :, None] if pixels.ndim == 2 else pixels
                return torch.from_numpy(pixels).permute(2, 0, 1).contiguous().to(torch.float32).div(255)


        class Resize:
            def __init__(self, size):
                self.size = size

            def __call__(self, image):
                return image.resize((self.size, self.size))


        class Normalize:
            def __init__(self, mean, std):
                self.mean, self.std = mean, std

            def __call__(self, tensor):
                tensor = tensor.clone()
                mean = torch.as_tensor(self.mean, dtype=tensor.dtype).view(-1, 1, 1)
                std = torch.as_tensor(self.std, dtype=tensor.dtype).view(-1, 1, 1)
                return tensor.sub_(mean).div_(std)


        def __getattr__(name):
            if name.startswith("_"):
                raise AttributeError(name)
            return absent(name)
    """,
    "transforms/functional.py": """
        from enum import Enum


        class InterpolationMode(Enum):
            NEAREST = "nearest"
            NEAREST_EXACT = "nearest-exact"
            BILINEAR = "bilinear"
            BICUBIC = "bicubic"
            BOX = "box"
            HAMMING = "hamming"
            LANCZOS = "lanczos"
    """,
}

# The program of ours that drives timm: the model is timm's, from its own repository.
_TIMM_DRIVER = """
    import numpy as np
    import timm
    import torch

    torch.manual_seed(0)
    model = timm.create_model("resnet18", num_classes=10)
    weights = np.random.default_rng(0)


    def draw(name, t):  # no weight stays zero (timm starts some so), or most gradients would be zero
        if t.dim() == 0 or "running" in name:
            return t.clone()
        scale = 0.1 if t.dim() == 1 else (2 / t[0].numel()) ** 0.5
        noise = torch.from_numpy((weights.standard_normal(tuple(t.shape)) * scale).astype(np.float32))
        return noise + 1 if t.dim() == 1 and name.endswith("weight") else noise


    state = {name: draw(name, t) for name, t in model.state_dict().items()}
    model.load_state_dict(state)
    print(sum(p.numel() for p in model.parameters()), "parameters,", len(state), "entries in the state dict")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9, weight_decay=1e-4)
    criterion = torch.nn.CrossEntropyLoss()
    model.train()
    for step in range(4):
        images = torch.from_numpy(weights.standard_normal((4, 3, 64, 64)).astype(np.float32))
        labels = torch.from_numpy(weights.integers(0, 10, 4))
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        if step == 0:
            for name, p in model.named_parameters():
                print(f"grad {name}: norm {p.grad.norm().item():.6g}")
        optimizer.step()
        print(f"step {step}: loss {loss.item():.6f}")
    model.eval()
    with torch.no_grad():
        out = model(torch.from_numpy(weights.standard_normal((2, 3, 64, 64)).astype(np.float32)))
    print(f"eval logits: norm {out.norm().item():.4f}, classes {out.argmax(dim=1).tolist()}")
    print("running mean", f"{model.bn1.running_mean.abs().sum().item():.6f}", int(model.bn1.num_batches_tracked))
"""


_SEEDED = """
    import runpy
    import sys

    import torch

    torch.manual_seed(0)
    del sys.argv[0]
    runpy.run_path(sys.argv[0], run_name="__main__")
"""


# Ends a program after some steps of its optimizers, and prints what these hold by then.
_LIMITED = """
    import random
    import runpy
    import sys

    import numpy
    import torch
    from torch.optim.optimizer import register_optimizer_step_post_hook

    left, seen = int(sys.argv[1]), {}


    def count(optimizer, args, kwargs):
        global left
        left -= 1
        seen[id(optimizer)] = optimizer
        if left == 0:
            for optimizer in seen.values():
                norms = [p.detach().double().norm().item() for group in optimizer.param_groups for p in group["params"]]
                print("\\n", type(optimizer).__name__, len(norms), "parameters, norms", sum(norms))
            raise SystemExit(0)


    register_optimizer_step_post_hook(count)
    random.seed(0)
    numpy.random.seed(0)
    torch.manual_seed(0)
    del sys.argv[:2]
    runpy.run_path(sys.argv[0], run_name="__main__")
"""

# LLMs-from-scratch asks for GPT-2's tokens, which are a download: bytes are tokens here.
_TIKTOKEN = """
    class Bytes:
        def encode(self, text, allowed_special=()):
            return list(text.encode())

        def decode(self, ids):
            return " ".join(map(str, ids))


    def get_encoding(name):
        return Bytes()
"""


def _write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip("\n"))


def torchvision(folder: Path) -> None:
    """Writes the stand-in package `torchvision` into `folder`."""
    _write(folder / "torchvision", _TORCHVISION)


def timm_driver(folder: Path) -> None:
    """Writes `train_resnet18.py`, and the stand-in torchvision that timm imports, into `folder`."""
    torchvision(folder)
    _write(folder, {"train_resnet18.py": _TIMM_DRIVER})


def seeded(folder: Path) -> None:
    """Writes `seeded.py`, which sets the seed that a program itself leaves to chance, then runs the program."""
    _write(folder, {"seeded.py": _SEEDED})


def limited(folder: Path) -> None:
    """Writes `limited.py`, which runs a program for a number of optimizer steps, and the stand-in torchvision, into `folder`."""
    torchvision(folder)
    _write(folder, {"limited.py": _LIMITED})


def byte_tokens(folder: Path) -> None:
    """Writes a module `tiktoken`, whose tokens are bytes, into `folder`."""
    _write(folder, {"tiktoken.py": _TIKTOKEN})


def text(folder: Path) -> None:
    """Writes `input.txt`, what Shakespeare wrote, and `limited.py` into `folder`."""
    limited(folder)
    (folder / "input.txt").write_text(TEXT.read_text())


def vocabulary(folder: Path) -> None:
    """Writes makemore's list, one word a line, to `folder/names.txt`."""
    words = {w.strip(".,;:!?'\"-[]()&").lower() for w in TEXT.read_text().split()}
    (folder / "names.txt").write_text("\n".join(sorted(w for w in words if w.isascii() and w.isalpha())))


def citations(folder: Path) -> None:
    """Writes a graph of papers of seven subjects, with words, in the form of Cora to `folder/../data/cora`, where pygcn looks for it."""
    draw, papers, known = np.random.default_rng(0), 1600, 200
    subjects = draw.integers(0, 7, papers)
    content = draw.random((papers, known)) < 0.02
    for subject in range(7):
        own = np.ix_(subjects == subject, range(subject * 20, subject * 20 + 20))
        content[own] |= draw.random(content[own].shape) < 0.2
    cites = [(i, draw.choice(np.flatnonzero(subjects == subjects[i])) if draw.random() < 0.8 else draw.integers(papers)) for i in draw.integers(0, papers, 4000)]
    data = folder.parent / "data" / "cora"
    data.mkdir(parents=True)
    rows = ("\t".join([str(1000 + i), *map(str, row.astype(int)), f"subject{subjects[i]}"]) for i, row in enumerate(content))
    (data / "cora.content").write_text("\n".join(rows) + "\n")
    (data / "cora.cites").write_text("".join(f"{1000 + a}\t{1000 + b}\n" for a, b in cites))


def words(folder: Path) -> None:
    """Writes a word corpus (train, valid, test) as word_language_model wants it into `folder/words`."""
    lines = TEXT.read_text().splitlines()
    data = folder / "words"
    data.mkdir(exist_ok=True)
    for name, part in {"train": lines[200:700], "valid": lines[700:760], "test": lines[760:820]}.items():
        (data / f"{name}.txt").write_text("\n".join(part).lower() + "\n")


def characters(folder: Path) -> None:
    """Writes nanoGPT's character data (two files of uint16 and the vocabulary) to `folder/data/shakespeare_char`."""
    text = TEXT.read_text()[:120_000]
    itos = dict(enumerate(sorted(set(text))))
    stoi = {c: i for i, c in itos.items()}
    ids = np.array([stoi[c] for c in text], np.uint16)
    data = folder / "data" / "shakespeare_char"
    data.mkdir(parents=True, exist_ok=True)
    ids[:100_000].tofile(data / "train.bin")
    ids[100_000:].tofile(data / "val.bin")
    (data / "meta.pkl").write_bytes(pickle.dumps({"vocab_size": len(itos), "itos": itos, "stoi": stoi}))
