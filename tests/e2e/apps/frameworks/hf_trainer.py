"""Hugging Face's Trainer: a tiny GPT-2 with random weights and tokens, a loader worker, checkpoints.

    hf_trainer.py FOLDER
"""
import sys

import job
import torch
import torch.distributed as dist
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
            job.say(dist.get_rank(), f"step {state.global_step} loss {logs['loss']!r}")


def main():
    arguments = TrainingArguments(
        output_dir=sys.argv[1], num_train_epochs=2, per_device_train_batch_size=2, logging_steps=1, save_steps=8,
        gradient_accumulation_steps=2, report_to=[], use_cpu=True, ddp_backend="gloo", disable_tqdm=True,
        log_on_each_node=True, dataloader_num_workers=1,
    )
    job.seed_torch(0)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=64, n_positions=16, n_embd=16, n_layer=2, n_head=2))
    trainer = Trainer(model=model, args=arguments, train_dataset=Tokens(), callbacks=[Say()])
    trainer.train()
    job.say(dist.get_rank(), f"weights {job.digest_of_weights(model)}")


if __name__ == "__main__":
    main()
