"""a training loop with accumulation and clipping in float32 and bfloat16, saved state, empty weights, dispatch

bfloat16 holds 8 bits, so sums in another order differ in the fourth digit.
"""

from pathlib import Path

import torch
from accelerate import Accelerator, cpu_offload, infer_auto_device_map, init_empty_weights, load_checkpoint_and_dispatch
from accelerate.state import AcceleratorState
from accelerate.utils import find_executable_batch_size, set_seed
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset


def train(precision, accumulation):
    set_seed(7)
    accelerator = Accelerator(mixed_precision=precision, gradient_accumulation_steps=accumulation, cpu=True)
    print(accelerator.device, accelerator.num_processes, accelerator.mixed_precision, accelerator.distributed_type)
    model = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.LayerNorm(32), nn.Dropout(0.1), nn.Linear(32, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    x = torch.randn(64, 8)
    loader = DataLoader(TensorDataset(x, (x[:, :3].sum(1) > 0).long()), batch_size=16, shuffle=True)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=8)
    model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)
    for epoch in range(2):
        for features, targets in loader:
            with accelerator.accumulate(model):
                loss = cross_entropy(model(features), targets)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    print("norm", f"{accelerator.clip_grad_norm_(model.parameters(), 1.0):.5f}")
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            print("epoch", epoch, "loss", f"{accelerator.gather(loss).mean().item():.5f}", scheduler.get_last_lr())
    model.eval()
    with torch.no_grad():
        found = [accelerator.gather_for_metrics((model(features).argmax(-1), targets)) for features, targets in loader]
    print("right", sum((classes == targets).sum().item() for classes, targets in found))
    accelerator.save_state("state")
    before = [p.detach().clone() for p in model.parameters()]
    nn.init.zeros_(model[0].weight)
    accelerator.load_state("state")
    print("restored", all(torch.equal(p, q) for p, q in zip(before, model.parameters())))
    accelerator.save_model(model, "model")
    print(sorted(path.name for folder in ("state", "model") for path in Path(folder).iterdir()))
    print(accelerator.reduce(torch.tensor([1.0, 2.0])), accelerator.get_state_dict(model).keys(), accelerator.unwrap_model(model))
    accelerator.free_memory()
    AcceleratorState._reset_state(True)


train("no", 1)
train("bf16", 2)
with init_empty_weights(include_buffers=True):
    empty = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
print([p.device for p in empty.parameters()], infer_auto_device_map(empty, max_memory={"cpu": 10**6}))
filled = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
torch.save(filled.state_dict(), "weights.bin")
loaded = load_checkpoint_and_dispatch(empty, "weights.bin", device_map={"": "cpu"})
print("dispatched", loaded(torch.ones(1, 4)))
cpu_offload(filled, execution_device=torch.device("cpu"))
print("offloaded", filled(torch.ones(1, 4)))


@find_executable_batch_size(starting_batch_size=8)
def largest(batch_size):
    if batch_size > 2:
        raise RuntimeError("CUDA out of memory.")
    return batch_size


print("batch size", largest())
