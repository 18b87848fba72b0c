"""Draws numbers of Python's generator, unseeded, in steps that it names itself."""
import random

import deja


def train_step(step):
    return random.random()


for step in deja.steps(range(5)):
    print(step, train_step(step))
