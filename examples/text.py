"""What char_gpt.py and char_lstm.py share: the text as numbers, the training loop with its checkpoint, the options."""

import argparse
import math
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from tqdm import tqdm

DATA = Path(__file__).resolve().parent / "data" / "shakespeare.txt"


class Text:
    """A text as a vector of character numbers; the last tenth is kept for validation."""

    def __init__(self, path):
        text = Path(path).read_text()
        self.characters = sorted(set(text))
        self.number = {c: i for i, c in enumerate(self.characters)}
        ids = self.encode(text)
        split = len(ids) * 9 // 10
        self.train, self.validation = ids[:split], ids[split:]

    def encode(self, text):
        return torch.tensor([self.number[c] for c in text])

    def decode(self, ids):
        return "".join(self.characters[i] for i in ids.tolist())

    def batch(self, part, batch_size, length):
        """Random windows of `length` characters, (batch, length), and the same windows one character later."""
        starts = torch.randint(len(part) - length, (batch_size, 1))
        windows = part[starts + torch.arange(length + 1)]
        return windows[:, :-1], windows[:, 1:]


def options(description, **defaults):
    """The command line of both programs; `defaults` are the settings that differ between them."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, default=DATA, help="a plain text file to learn from")
    parser.add_argument("--steps", type=int, default=defaults["steps"], help="train until this step")
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--length", type=int, default=64, help="characters that the model sees at once")
    parser.add_argument("--width", type=int, default=defaults["width"])
    parser.add_argument("--layers", type=int, default=defaults["layers"])
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--lr", type=float, default=defaults["lr"])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--log-every", type=int, default=50, metavar="STEPS")
    parser.add_argument("--checkpoint", type=Path, default=Path(defaults["checkpoint"]), metavar="FILE")
    parser.add_argument("--save-every", type=int, default=500, metavar="STEPS")
    parser.add_argument("--resume", action="store_true", help="go on from the checkpoint")
    parser.add_argument("--prompt", default="\n", help="what the generated text starts with")
    parser.add_argument("--generate", type=int, default=400, metavar="N", help="characters to write at the end")
    parser.add_argument("--temperature", type=float, default=0.8)
    return parser


def loss_of(model, inputs, targets):
    return F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())


@torch.no_grad()
def validate(model, text, args, batches=20):
    """The mean loss over the same windows of the validation text every time; leaves the random numbers as they are."""
    model.eval()
    state = torch.get_rng_state()
    torch.manual_seed(1)
    losses = [loss_of(model, *text.batch(text.validation, args.batch_size, args.length)) for _ in range(batches)]
    torch.set_rng_state(state)
    model.train()
    return torch.stack(losses).mean().item()


def train(model, text, args):
    """Trains `model` to predict the next character until step `args.steps`, with checkpoints on the way."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, betas=(0.9, 0.99), weight_decay=0.1)
    warmup = 100

    def rate(step):  # a linear rise, then half a cosine down to a tenth
        if step < warmup:
            return (step + 1) / warmup
        done = min((step - warmup) / max(args.steps - warmup, 1), 1.0)
        return 0.1 + 0.45 * (1 + math.cos(math.pi * done))

    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    first = 0
    if args.resume:
        saved = torch.load(args.checkpoint, weights_only=True)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        schedule.load_state_dict(saved["schedule"])
        torch.set_rng_state(saved["random"])
        first = saved["step"]
        print(f"resumed from {args.checkpoint} at step {first}")

    def save(step):
        torch.save(
            {
                "model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "schedule": schedule.state_dict(),
                "random": torch.get_rng_state(),
                "step": step,
            },
            args.checkpoint,
        )

    model.train()
    start = time.perf_counter()
    with tqdm(total=args.steps, initial=first, unit="step", desc="training") as bar:
        for step in range(first + 1, args.steps + 1):
            loss = loss_of(model, *text.batch(text.train, args.batch_size, args.length))
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            bar.update()
            if step % args.log_every == 0:
                value = loss.item()
                bar.set_postfix(loss=f"{value:.4f}")
                tqdm.write(f"step {step:5d}  loss {value:.6f}")
            if step % args.save_every == 0 and step != args.steps:
                save(step)
    save(args.steps)
    seconds = time.perf_counter() - start
    print(f"validation loss {validate(model, text, args):.4f} after step {args.steps}; "
          f"trained in {seconds:.1f} s; checkpoint in {args.checkpoint}")  # fmt: skip


def draw(logits, temperature):
    """One character number drawn from the last position's logits: (batch, characters) to (batch, 1)."""
    return torch.multinomial(F.softmax(logits / temperature, dim=-1), num_samples=1)
