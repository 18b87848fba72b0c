"""Deja's checkpoints in a Trainer of Hugging Face's transformers.

    trainer.add_callback(deja.hf.DejaCallback(trainer, every=100))

A step is one of the optimizer. A replay can start at a checkpoint in the pass over the data in which its first step is.
Nothing happens where nothing is recorded or replayed.
"""

import dataclasses
import sys

from transformers import TrainerCallback

from deja import engine

# The Trainer's state: what it counts besides its `state`, and variables of the method that runs its loop.
_ATTRIBUTES = ("_tr_loss", "_total_loss_scalar", "_globalstep_last_logged", "current_flos")
_VARIABLES = ("step", "tr_loss")


class DejaCallback(TrainerCallback):
    def __init__(self, trainer, every=None):
        self._trainer, self._every = trainer, every

    def on_train_begin(self, args, state, control, **kwargs):
        if engine.mode() == engine.OFF:
            return
        import deja.torch

        optimizer, scheduler = kwargs["optimizer"], kwargs["lr_scheduler"]
        self._progress = _Progress(self._trainer)
        deja.torch.watch(
            model=kwargs["model"],
            optimizer=getattr(optimizer, "optimizer", optimizer),  # accelerate's has torch's inside
            scheduler=scheduler,
            trainer=self._progress,
            every=self._every,
        )
        self._fetch = self._trainer.get_batch_samples
        self._trainer.get_batch_samples = self._begin_step

    def on_epoch_begin(self, args, state, control, **kwargs):
        if engine.mode() != engine.OFF:
            from deja.loop import LOOP

            LOOP.begin_pass()

    def on_epoch_end(self, args, state, control, **kwargs):
        if engine.mode() != engine.OFF:
            from deja.loop import LOOP

            LOOP.end_pass()

    def _begin_step(self, iterator, count, *args):
        from deja.loop import LOOP

        frame = sys._getframe(1)
        # After a late start the Trainer's own count of the steps in the pass goes on.
        if self._progress.starts_late and LOOP.batch >= frame.f_locals["steps_in_epoch"]:
            self._trainer.control.should_epoch_stop = True
            return [], None
        self._progress.frame = frame
        if LOOP.begin_step_of(iterator):
            self._progress.starts_late = True
        self._progress.frame = None
        batches, items = self._fetch(iterator, count, *args)
        LOOP.batch += len(batches)
        return batches, items


class _Progress:
    def __init__(self, trainer):
        self._trainer = trainer
        self.frame = None  # the loop's, while a step begins
        self.starts_late = False

    def state_dict(self):
        trainer, variables = self._trainer, self.frame.f_locals
        fields = {f.name: getattr(trainer.state, f.name) for f in dataclasses.fields(trainer.state)}
        fields.pop("stateful_callbacks", None)
        return {
            "state": fields,
            "attributes": {name: getattr(trainer, name) for name in _ATTRIBUTES if hasattr(trainer, name)},
            "variables": {name: variables[name] for name in _VARIABLES if name in variables},
        }

    def load_state_dict(self, held):
        from deja.loop import assign

        for name, value in held["state"].items():
            setattr(self._trainer.state, name, value)
        for name, value in held["attributes"].items():
            setattr(self._trainer, name, value)
        for name, value in held["variables"].items():
            assign(self.frame, name, value)
