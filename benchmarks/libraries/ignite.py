"""a trainer and an evaluator with 12 metrics, checkpoints, early stopping, schedules, a moving average; resuming, a search for a rate, a deterministic run"""

import os

import torch
from ignite import metrics
from ignite.engine import Engine, Events, create_supervised_evaluator, create_supervised_trainer
from ignite.engine.deterministic import DeterministicEngine
from ignite.handlers import (
    Checkpoint,
    CosineAnnealingScheduler,
    DiskSaver,
    EarlyStopping,
    EMAHandler,
    FastaiLRFinder,
    ModelCheckpoint,
    TerminateOnNan,
    create_lr_scheduler_with_warmup,
    global_step_from_engine,
)
from ignite.utils import manual_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

manual_seed(3)
x = torch.randn(256, 10)
y = (x[:, :3].sum(1) > 0).long() + (x[:, 3] > 1).long()
train = DataLoader(TensorDataset(x[:192], y[:192]), batch_size=32, shuffle=True)
test = DataLoader(TensorDataset(x[192:], y[192:]), batch_size=32)
model = nn.Sequential(nn.Linear(10, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
criterion = nn.CrossEntropyLoss()
trainer = create_supervised_trainer(model, optimizer, criterion, gradient_accumulation_steps=2)
metrics.RunningAverage(output_transform=lambda loss: loss).attach(trainer, "loss")
precision, recall = metrics.Precision(average=False), metrics.Recall(average=False)
evaluator = create_supervised_evaluator(
    model,
    metrics={
        "accuracy": metrics.Accuracy(),
        "loss": metrics.Loss(criterion),
        "precision": precision,
        "confusion": metrics.ConfusionMatrix(3),
        "f1": metrics.Fbeta(1.0, False, precision, recall),
        "top2": metrics.TopKCategoricalAccuracy(2),
        "iou": metrics.mIoU(metrics.ConfusionMatrix(3)),
        "own": (precision * recall * 2 / (precision + recall)).mean(),
    },
)
cosine = CosineAnnealingScheduler(optimizer, "lr", 0.1, 0.001, 30)
scheduler = create_lr_scheduler_with_warmup(cosine, warmup_start_value=0.0, warmup_end_value=0.1, warmup_duration=5)
trainer.add_event_handler(Events.ITERATION_STARTED, scheduler)
trainer.add_event_handler(Events.ITERATION_COMPLETED, TerminateOnNan())
average = EMAHandler(model, momentum=0.1)
average.attach(trainer, name="momentum")
best = ModelCheckpoint(
    "best",
    "m",
    n_saved=2,
    score_function=lambda engine: engine.state.metrics["accuracy"],
    score_name="accuracy",
    global_step_transform=global_step_from_engine(trainer),
)
evaluator.add_event_handler(Events.COMPLETED, best, {"model": model})
evaluator.add_event_handler(Events.COMPLETED, EarlyStopping(3, lambda engine: -engine.state.metrics["loss"], trainer))
everything = {"trainer": trainer, "model": model, "optimizer": optimizer, "scheduler": scheduler}
saver = Checkpoint(everything, DiskSaver("all"), n_saved=1)
trainer.add_event_handler(Events.EPOCH_COMPLETED(every=2), saver)


@trainer.on(Events.ITERATION_COMPLETED(every=4))
def show(engine):
    state, rate = engine.state, optimizer.param_groups[0]["lr"]
    print(f"epoch {state.epoch} step {state.iteration} loss {state.output:.6f} {state.metrics['loss']:.6f} rate {rate:.5f}")


@trainer.on(Events.EPOCH_COMPLETED)
def evaluate(engine):
    evaluator.run(test)
    for name, value in evaluator.state.metrics.items():
        print(name, value)


print(trainer.run(train, max_epochs=5))
print(sorted(os.listdir("best")), os.listdir("all"))
print("average", sum(p.sum() for p in average.ema_model.parameters()))
Checkpoint.load_objects(everything, torch.load(os.path.join("all", os.listdir("all")[0]), weights_only=False))
print("loaded", trainer.state.iteration, model(x[:2]).sum())
trainer.run(train, max_epochs=6)
finder = FastaiLRFinder()
other = create_supervised_trainer(model, optimizer, criterion)
with finder.attach(other, to_save={"model": model, "optimizer": optimizer}, end_lr=1.0, num_iter=10, diverge_th=1e9) as search:
    search.run(train)
print(finder.get_results())
images = torch.rand(2, 3, 32, 32)
passing = Engine(lambda engine, batch: batch)
for name, metric in {"ssim": metrics.SSIM(1.0), "psnr": metrics.PSNR(1.0), "mse": metrics.MeanSquaredError()}.items():
    metric.attach(passing, name)
print(passing.run([(images, (images + 0.05).clamp(0, 1))]).metrics)
DeterministicEngine(lambda engine, batch: print(batch[1][:4].tolist(), torch.rand(1).item())).run(train, max_epochs=1)
