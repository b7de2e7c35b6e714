"""transforms v1 and v2 on PIL images, tensors and tv_tensors, image files, data sets in workers, drawing

Pixels are shown as checksums: bytes have to be the same, one by one. v1 resizes tensors of bytes in float and rounds the
result, so a pixel that lies between two bytes may fall to either side.
"""

import random
import zlib
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader
from torchvision import datasets, io, tv_tensors, utils
from torchvision import transforms as v1
from torchvision.transforms import v2


def picture(height, width, seed=0):
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    pixels = np.stack([(x * (3 + k) + y * (5 - k)) % 256 for k in range(3)], -1) + rng.integers(0, 20, (height, width, 3))
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))


def digest(x):
    if isinstance(x, dict):
        return {key: digest(value) for key, value in x.items()}
    if isinstance(x, (tuple, list)):
        return [digest(value) for value in x]
    if isinstance(x, Image.Image):
        return f"{x.mode} {x.size} {zlib.crc32(x.tobytes())}"
    if isinstance(x, torch.Tensor):
        shown = zlib.crc32(x.numpy().tobytes()) if x.dtype == torch.uint8 else f"{x.double().sum().item():.4f}"
        return f"{type(x).__name__} {tuple(x.shape)} {x.dtype} {shown}"
    return x


def run(transform, *inputs, times=2):
    print(transform)
    torch.manual_seed(1)
    random.seed(1)
    for _ in range(times):
        print(digest([transform(x) for x in inputs]))
    print(f"the next random number {torch.rand(()).item():.6f}")


def transformed():
    pil = picture(40, 52)
    pixels = v1.functional.pil_to_tensor(pil).contiguous()
    floats = pixels / 255
    common = {
        "RandomResizedCrop": {"size": 24},
        "RandomCrop": {"size": 30, "padding": 4, "padding_mode": "reflect"},
        "ColorJitter": {"brightness": 0.4, "contrast": 0.3, "saturation": 0.5, "hue": 0.2},
        "RandomAffine": {"degrees": 30, "translate": (0.1, 0.2), "scale": (0.8, 1.2)},
        "GaussianBlur": {"kernel_size": 5},
        "RandomAdjustSharpness": {"sharpness_factor": 2.0},
        "AutoAugment": {},
        "RandAugment": {},
        "TrivialAugmentWide": {},
    }
    for name, settings in common.items():
        for module in (v1, v2):
            run(getattr(module, name)(**settings), pil, pixels)
    normalize = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
    run(v1.Compose([v1.Resize(32), v1.CenterCrop(28), v1.ToTensor(), v1.Normalize(*normalize), v1.RandomErasing(0.8)]), pil, times=4)
    chosen = v2.RandomChoice([v2.ElasticTransform(20.0), v2.RandomInvert(), v2.RandomSolarize(128)])
    run(v2.Compose([v2.RandomPhotometricDistort(), chosen, v2.ToDtype(torch.float32, scale=True), v2.Normalize(*normalize)]), pixels, times=4)
    run(nn.Sequential(v1.RandomHorizontalFlip(), v1.ConvertImageDtype(torch.float32), v1.Normalize(*normalize)), pixels)
    batch, labels = torch.stack([floats, floats.flip(-1)]), torch.tensor([1, 3])
    for mix in (v2.MixUp(num_classes=5), v2.CutMix(num_classes=5)):
        torch.manual_seed(2)
        print(mix, digest(mix(batch, labels)))


def annotated():
    pixels = tv_tensors.Image(picture(40, 52))
    sample = {
        "image": pixels,
        "mask": tv_tensors.Mask((pixels[:1] > 100).byte()),
        "boxes": tv_tensors.BoundingBoxes([[2, 3, 20, 30], [10, 10, 40, 38.0]], format="XYXY", canvas_size=(40, 52)),
        "points": tv_tensors.KeyPoints([[1.0, 2], [30, 20]], canvas_size=(40, 52)),
        "video": tv_tensors.Video(torch.stack([pixels, pixels])),
        "label": 3,
    }
    print(sample["boxes"], type(sample["boxes"] * 2).__name__, type(sample["boxes"].clone()).__name__)
    with tv_tensors.set_return_type("TVTensor"):
        print(type(pixels + 1).__name__)
    geometry = [v2.RandomZoomOut(p=1.0), v2.RandomHorizontalFlip(1.0), v2.RandomRotation(30), v2.Resize((32, 36)), v2.RandomCrop(30)]
    run(v2.Compose([*geometry, v2.ClampBoundingBoxes(), v2.ConvertBoundingBoxFormat("CXCYWH")]), sample)


def files():
    pixels = torch.from_numpy(np.array(picture(40, 52))).permute(2, 0, 1)
    io.write_png(pixels, "picture.png")
    io.write_jpeg(pixels, "picture.jpg", quality=80)
    for name in ("picture.png", "picture.jpg"):
        for mode in ("UNCHANGED", "GRAY", "RGB"):
            print(name, mode, digest(io.decode_image(name, mode)))
    for name in "abc":
        Path("images", name).mkdir(parents=True)
        for k in range(4):
            picture(30 + 3 * k, 50 - 4 * k, seed=k + ord(name)).save(f"images/{name}/{k}.png")
    train = v2.Compose([v2.ToImage(), v2.RandomResizedCrop(24), v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32, scale=True)])
    folder = datasets.ImageFolder("images", transform=train)
    print(folder, folder.class_to_idx)
    for workers in (0, 2):
        torch.manual_seed(0)
        for images, labels in DataLoader(folder, batch_size=4, shuffle=True, num_workers=workers):
            print(workers, digest(images), labels)
    try:
        datasets.wrap_dataset_for_transforms_v2(datasets.FakeData(4, (3, 20, 20), 3))
    except TypeError as error:
        print(error)


def drawn():
    generator = torch.Generator().manual_seed(0)
    pixels = torch.from_numpy(np.array(picture(60, 80))).permute(2, 0, 1).contiguous()
    boxes = torch.tensor([[5, 6, 30, 40], [20, 10, 70, 50.0]])
    masks = torch.zeros(2, 60, 80, dtype=torch.bool)
    masks[0, 5:30, 5:30] = masks[1, 20:50, 20:70] = True
    print(digest(utils.make_grid(torch.rand(10, 3, 12, 14, generator=generator), nrow=4, normalize=True, scale_each=True)))
    print(digest(utils.draw_bounding_boxes(pixels, boxes, labels=["a", "b"], colors=["red", "blue"], width=2, fill=True)))
    print(digest(utils.draw_segmentation_masks(pixels, masks, alpha=0.4, colors=["red", "blue"])))
    print(digest(utils.draw_keypoints(pixels, boxes.reshape(2, 2, 2), connectivity=[(0, 1)], colors="red")))
    print(digest(utils.flow_to_image(torch.randn(2, 10, 12, generator=generator))))


if __name__ == "__main__":
    transformed()
    annotated()
    files()
    drawn()
