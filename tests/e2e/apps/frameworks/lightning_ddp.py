"""A Lightning trainer that starts its ranks itself.

    lightning_ddp.py FOLDER ddp | ddp_spawn | ddp_fork
"""
import sys

import job
import lightning
import torch
from torch.utils.data import DataLoader


class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Dropout(0.2), torch.nn.Linear(16, 2))

    def on_fit_start(self):
        job.seed_torch(self.global_rank)

    def training_step(self, batch, i):
        loss = self.net(batch).pow(2).mean()
        job.say(self.global_rank, f"epoch {self.current_epoch} step {i} loss {loss.item()!r}")
        return loss

    def validation_step(self, batch, i):
        self.log("val", self.net(batch).mean(), sync_dist=True)

    def on_fit_end(self):
        job.say(self.global_rank, f"weights {job.digest_of_weights(self)}")

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), 1e-3)


def main():
    job.seed_torch(0)
    trainer = lightning.Trainer(
        accelerator="cpu", devices=2, max_epochs=2, enable_progress_bar=False, enable_model_summary=False,
        logger=False, default_root_dir=sys.argv[1], strategy=sys.argv[2],
    )
    rows = torch.randn(48, 8)
    trainer.fit(Net(), DataLoader(rows, batch_size=4, shuffle=True), DataLoader(rows, batch_size=4))


if __name__ == "__main__":
    main()
