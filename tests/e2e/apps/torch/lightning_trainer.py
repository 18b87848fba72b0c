"""A Lightning trainer with Deja's callback, strategy ddp over gloo; its ranks are started by whoever starts the job."""
import sys

import deja.lightning
import job
import lightning
import torch
from lightning.pytorch.plugins.environments import TorchElasticEnvironment
from lightning.pytorch.strategies import DDPStrategy
from torch.utils.data import DataLoader


class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Dropout(0.2), torch.nn.Linear(16, 2))

    def training_step(self, batch, i):
        loss = self.net(batch).pow(2).mean()
        job.say(f"epoch {self.current_epoch} step {i} loss {loss.item()!r}")
        return loss

    def validation_step(self, batch, i):
        self.log("val", self.net(batch).mean(), sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), 1e-3)


def loader(shuffle):
    return DataLoader(torch.randn(48, 8), batch_size=4, shuffle=shuffle)


torch.set_num_threads(1)
net = Net()
trainer = lightning.Trainer(
    accelerator="cpu", devices=2, max_epochs=2, enable_progress_bar=False, enable_checkpointing=False, logger=False,
    enable_model_summary=False, default_root_dir=sys.argv[1],
    strategy=DDPStrategy(process_group_backend="gloo", cluster_environment=TorchElasticEnvironment()),
    callbacks=[deja.lightning.DejaCallback(every=2)],
)
trainer.fit(net, loader(True), loader(False))
job.say_weights(net)
