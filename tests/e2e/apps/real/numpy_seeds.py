"""A script as people write them: seeds from everywhere, none of them set."""
import os
import random
import secrets
import tempfile
import threading
import time
import uuid

import numpy as np

drawn = []


def draw(i):
    drawn.append((i, random.random(), os.urandom(2).hex()))


print(np.random.default_rng().normal(size=3), np.random.rand(2), random.random())
print(np.random.default_rng(int(time.time())).integers(1 << 30, size=2))
print(secrets.token_hex(4), uuid.uuid4(), uuid.uuid1(), time.time(), os.getpid())
print(hash("text"), {str(i) for i in range(5)}, os.cpu_count())
for i in range(4):
    thread = threading.Thread(target=draw, args=(i,))
    thread.start()
    thread.join()
print(drawn)
with tempfile.NamedTemporaryFile() as file:
    file.write(b"x" * 100)
    file.flush()
    print(file.name, os.path.getsize(file.name))
values = np.random.rand(64, 64)
print(np.linalg.eigvalsh(values @ values.T).tobytes().hex()[:64], time.strftime("%c"))
