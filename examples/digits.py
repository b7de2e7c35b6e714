"""Trains a small CNN to read handwritten digits: the 1,797 real ones, of 8x8 pixels, that ship with scikit-learn.

    python -m torchlike.run examples/digits.py            # on torchlike
    python examples/digits.py                             # the same program on PyTorch, where that is installed
    python -m torchlike.run examples/digits.py --plot     # also draws the loss curve and the misread digits

Every fifth digit is kept for the test. The same seed gives the same losses on both.
"""

import argparse
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset
from tqdm import tqdm


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 32, 3, padding=1, bias=False),
            nn.BatchNorm2d(32),
            nn.SiLU(),
            nn.Conv2d(32, 32, 3, padding=1, bias=False),
            nn.BatchNorm2d(32),
            nn.SiLU(),
            nn.AvgPool2d(2),
            nn.Conv2d(32, 64, 3, padding=1, bias=False),
            nn.BatchNorm2d(64),
            nn.SiLU(),
        )
        self.head = nn.Sequential(nn.Flatten(), nn.Dropout(0.4), nn.Linear(64 * 4 * 4, 10))

    def forward(self, images):
        return self.head(self.features(images))


def load_data():
    """Images as (n, 1, 8, 8) floats from -1 to 1 and labels, for training and for the test."""
    digits = load_digits()
    images = torch.from_numpy(digits.images).float().unsqueeze(1) / 8 - 1
    labels = torch.from_numpy(digits.target)
    test = torch.arange(len(labels)) % 5 == 0
    return TensorDataset(images[~test], labels[~test]), TensorDataset(images[test], labels[test])


def shift(images):
    """Moves every image of the batch by up to one pixel, each its own way."""
    n = images.size(0)
    dy, dx = torch.randint(3, (n, 1, 1)), torch.randint(3, (n, 1, 1))
    rows = torch.arange(8).view(1, 8, 1) + dy
    columns = torch.arange(8).view(1, 1, 8) + dx
    padded = F.pad(images, (1, 1, 1, 1), value=-1.0)
    return padded[torch.arange(n).view(n, 1, 1), 0, rows, columns].unsqueeze(1)


def train(model, data, args):
    """Trains for `args.epochs` epochs, or `args.steps` steps if that comes first; returns the loss of every step."""
    loader = DataLoader(data, batch_size=args.batch_size, shuffle=True, drop_last=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.05)
    total = args.epochs * len(loader)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=total)
    total = total if args.steps is None else min(total, args.steps)
    losses = []
    model.train()
    with tqdm(total=total, unit="step", desc="training") as bar:
        for _ in range(args.epochs):
            for images, labels in loader:
                loss = F.cross_entropy(model(shift(images)), labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
                losses.append(loss.item())
                bar.update()
                if len(losses) % args.log_every == 0:
                    bar.set_postfix(loss=f"{losses[-1]:.4f}")
                    tqdm.write(f"step {len(losses):4d}  loss {losses[-1]:.6f}")
                if len(losses) == total:
                    return losses
    return losses


@torch.no_grad()
def evaluate(model, data):
    """The predicted digit of every image of `data`, and how many are right."""
    model.eval()
    images, labels = data.tensors
    predicted = model(images).argmax(dim=1)
    return predicted, (predicted == labels).sum().item()


def plot(path, losses, data, predicted):
    """Writes a picture of the loss curve and of the digits that were misread."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    images, labels = data.tensors
    wrong = (predicted != labels).nonzero().flatten().tolist()[:12]
    figure = plt.figure(figsize=(9, 4), layout="constrained")
    left, right = figure.subfigures(1, 2)
    axes = left.subplots()
    axes.plot(losses)
    axes.set(xlabel="step", ylabel="training loss", yscale="log")
    right.suptitle(f"misread digits ({(predicted != labels).sum().item()} of {len(labels)})")
    for axes in right.subplots(3, 4).flat:
        axes.axis("off")
        if wrong:
            i = wrong.pop(0)
            axes.imshow(images[i, 0].numpy(), cmap="gray_r")
            axes.set_title(f"{labels[i].item()} read as {predicted[i].item()}", fontsize=8)
    figure.savefig(path, dpi=120)
    print(f"wrote {path}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--steps", type=int, help="stop after so many steps")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--log-every", type=int, default=20, metavar="STEPS")
    parser.add_argument("--plot", nargs="?", const="digits.png", metavar="FILE", help="write a picture (digits.png)")
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    train_data, test_data = load_data()
    model = Net()
    print(f"torch {torch.__version__}; {sum(p.numel() for p in model.parameters())} parameters; "
          f"{len(train_data)} digits to train on, {len(test_data)} for the test")  # fmt: skip
    start = time.perf_counter()
    losses = train(model, train_data, args)
    seconds = time.perf_counter() - start
    predicted, right = evaluate(model, test_data)
    print(f"test accuracy {right / len(test_data):.2%} ({right} of {len(test_data)}), trained in {seconds:.1f} s")
    if args.plot is not None:
        plot(args.plot, losses, test_data, predicted)


if __name__ == "__main__":
    main()
