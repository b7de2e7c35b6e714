"""fit, test, predict, callbacks, checkpoints, resuming, weight averaging, bfloat16, float64, Fabric

bfloat16 holds 8 bits, so sums in another order differ in the fourth digit.
"""

from pathlib import Path

import lightning
import torch
from lightning.pytorch.callbacks import Callback, EarlyStopping, LearningRateMonitor, ModelCheckpoint, StochasticWeightAveraging
from lightning.pytorch.loggers import CSVLogger
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset, random_split


class Classifier(lightning.LightningModule):
    def __init__(self, hidden=32, lr=1e-2):
        super().__init__()
        self.save_hyperparameters()
        self.network = nn.Sequential(nn.Linear(8, hidden), nn.ReLU(), nn.Dropout(0.1), nn.BatchNorm1d(hidden), nn.Linear(hidden, 3))

    def forward(self, x):
        return self.network(x)

    def training_step(self, batch, index):
        loss = cross_entropy(self(batch[0]), batch[1])
        self.log("train_loss", loss, on_step=True, on_epoch=True)
        return loss

    def validation_step(self, batch, index):
        logits = self(batch[0])
        right = logits.argmax(1) == batch[1]
        self.log_dict({"val_loss": cross_entropy(logits, batch[1]), "val_accuracy": right.float().mean()})

    test_step = validation_step

    def predict_step(self, batch, index):
        return self(batch[0]).argmax(1)

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
        return [optimizer], [torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)]


class Report(Callback):
    def on_train_epoch_end(self, trainer, module):
        print("epoch", trainer.current_epoch, {name: round(value.item(), 4) for name, value in trainer.callback_metrics.items()})


QUIET = {"accelerator": "cpu", "devices": 1, "enable_progress_bar": False, "enable_model_summary": False}
BARE = {**QUIET, "logger": False, "enable_checkpointing": False}
lightning.seed_everything(7)
x = torch.randn(600, 8)
y = (x @ torch.randn(8, 3) + 0.3 * torch.randn(600, 3)).argmax(1)
train, validation = random_split(TensorDataset(x, y), [480, 120])
train = DataLoader(train, 32, shuffle=True)
validation = DataLoader(validation, 60)

best = ModelCheckpoint("checkpoints", monitor="val_loss", save_top_k=2, save_last=True, filename="{epoch}-{val_loss:.2f}")
callbacks = [best, EarlyStopping("val_loss", patience=3), LearningRateMonitor(), Report()]
logger = CSVLogger(".", name="log")
trainer = lightning.Trainer(max_epochs=6, callbacks=callbacks, logger=logger, log_every_n_steps=5, gradient_clip_val=1.0, **QUIET)
model = Classifier()
trainer.fit(model, train, validation)
print(trainer.test(model, validation, verbose=False))
print("classes", torch.cat(trainer.predict(model, validation))[:20])
print(sorted(path.name for path in Path("checkpoints").iterdir()), Path("log/version_0/metrics.csv").read_text()[:300])
model = Classifier.load_from_checkpoint(best.best_model_path)
print(model.hparams, trainer.validate(model, validation, verbose=False))
trainer = lightning.Trainer(max_epochs=8, callbacks=[Report()], accumulate_grad_batches=2, **BARE)
trainer.fit(model, train, validation, ckpt_path="checkpoints/last.ckpt")
print("resumed until step", trainer.global_step)

for name, options in (
    ("averaged", {"max_epochs": 4, "callbacks": [Report(), StochasticWeightAveraging(1e-3)]}),
    ("bfloat16", {"max_epochs": 2, "callbacks": [Report()], "precision": "bf16-mixed", "overfit_batches": 4}),
    ("float64", {"max_steps": 20, "callbacks": [Report()], "precision": "64-true"}),
):
    lightning.seed_everything(1)
    print(name)
    lightning.Trainer(**options, **BARE).fit(Classifier(), train, validation)

fabric = lightning.Fabric(accelerator="cpu", devices=1)
linear = nn.Linear(8, 3)
linear, optimizer = fabric.setup(linear, torch.optim.SGD(linear.parameters(), 0.1))
for features, targets in fabric.setup_dataloaders(train):
    optimizer.zero_grad()
    loss = cross_entropy(linear(features), targets)
    fabric.backward(loss)
    optimizer.step()
fabric.save("fabric.ckpt", {"model": linear, "optimizer": optimizer})
print("Fabric", round(loss.item(), 4), list(fabric.load("fabric.ckpt")))
