"""A Trainer of Hugging Face's transformers with Deja's callback: a tiny GPT-2 with random weights and tokens."""
import sys

import deja.hf
import job
import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments


class Tokens(torch.utils.data.Dataset):
    def __init__(self):
        self.rows = torch.randint(0, 64, (48, 16))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return {"input_ids": self.rows[i], "labels": self.rows[i]}


class Say(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **kwargs):
        if "loss" in logs:
            job.say(f"step {state.global_step} loss {logs['loss']!r}")


torch.set_num_threads(1)
model = GPT2LMHeadModel(GPT2Config(vocab_size=64, n_positions=16, n_embd=16, n_layer=2, n_head=2))
trainer = Trainer(
    model=model,
    args=TrainingArguments(output_dir=sys.argv[1], num_train_epochs=2, per_device_train_batch_size=2, logging_steps=1,
                           gradient_accumulation_steps=2, save_strategy="no", report_to=[], use_cpu=True,
                           ddp_backend="gloo", disable_tqdm=True, log_on_each_node=True),
    train_dataset=Tokens(),
    callbacks=[Say()],
)
trainer.add_callback(deja.hf.DejaCallback(trainer, every=2))
trainer.train()
job.say_weights(model)
