"""Steps, state and updates of a training loop."""
