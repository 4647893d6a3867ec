"""pytorch-lightning: a module trained and validated by a Trainer, and its checkpoint."""

import logging
import os
import tempfile
import warnings

import pytorch_lightning as pl
import torch
from report import show
from torch.utils.data import DataLoader, TensorDataset

warnings.simplefilter("ignore")  # advice about workers
logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)


class Classifier(pl.LightningModule):
    def __init__(self, width=4):
        super().__init__()
        self.save_hyperparameters()
        self.layer = torch.nn.Linear(width, 2)
        self.losses = []

    def training_step(self, batch, index):
        loss = torch.nn.functional.cross_entropy(self.layer(batch[0]), batch[1])
        self.losses.append(loss.item())
        self.log("loss", loss)
        return loss

    def validation_step(self, batch, index):
        self.log("validation", torch.nn.functional.cross_entropy(self.layer(batch[0]), batch[1]))

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=0.05)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1)]


pl.seed_everything(0)
data = TensorDataset(torch.randn(64, 4), torch.randint(2, (64,)))
model = Classifier()
with tempfile.TemporaryDirectory() as folder:
    trainer = pl.Trainer(
        max_epochs=2,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        accelerator="cpu",
        default_root_dir=folder,
    )
    trainer.fit(model, DataLoader(data, 16, shuffle=True), DataLoader(data, 16))
    path = os.path.join(folder, "last.ckpt")
    trainer.save_checkpoint(path)
    again = Classifier.load_from_checkpoint(path)
show(losses=model.losses, validation=trainer.callback_metrics["validation"], weight=again.layer.weight)
