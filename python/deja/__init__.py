"""Deja's side of PyTorch: process groups and stores of torch.distributed in recordings and replays."""
