"""Process groups and stores of torch.distributed."""
