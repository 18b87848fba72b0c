"""Deja's checkpoints in a Trainer of Lightning.

    Trainer(callbacks=[deja.lightning.DejaCallback(every=100)], ...)

A step is a batch. A replay can start at a checkpoint in the pass over the data in which its first step is. What
self.log() gathers over a pass is not part of a checkpoint. Nothing happens where nothing is recorded or replayed.
"""

try:
    from lightning.pytorch import Callback
except ImportError:
    from pytorch_lightning import Callback

from deja import engine


class DejaCallback(Callback):
    def __init__(self, every=None):
        self._every = every

    def on_train_start(self, trainer, pl_module):
        if engine.mode() == engine.OFF:
            return
        import deja.torch
        from deja.loop import LOOP

        optimizers = {f"optimizer{n}": optimizer for n, optimizer in enumerate(trainer.optimizers)}
        schedulers = {f"scheduler{n}": config.scheduler for n, config in enumerate(trainer.lr_scheduler_configs)}
        progress = _Progress(trainer.fit_loop)
        deja.torch.watch(model=pl_module, progress=progress, every=self._every, **optimizers, **schedulers)
        loop = trainer.fit_loop.epoch_loop
        advance = loop.advance

        def begin_step(data_fetcher):
            LOOP.begin_step_of(data_fetcher)
            advance(data_fetcher)
            LOOP.batch += 1

        loop.advance = begin_step

    def on_train_epoch_start(self, trainer, pl_module):
        if engine.mode() != engine.OFF:
            from deja.loop import LOOP

            LOOP.begin_pass()

    def on_train_epoch_end(self, trainer, pl_module):
        if engine.mode() != engine.OFF:
            from deja.loop import LOOP

            LOOP.end_pass()


class _Progress:
    """What the loops have counted."""

    def __init__(self, loop):
        self._loop = loop

    def state_dict(self):
        return self._loop.state_dict()

    def load_state_dict(self, held):
        self._loop.load_state_dict(held)
        self._loop.restarting = False  # it goes on, and does not begin again
