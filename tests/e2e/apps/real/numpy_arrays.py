"""Arrays in files, whole and mapped: a random choice of rows of each.

    numpy_arrays.py FOLDER make|read
"""
import sys

import numpy as np


def main():
    folder, what = sys.argv[1:]
    rng = np.random.default_rng()
    if what == "make":
        np.save(folder + "/whole.npy", rng.normal(size=(300, 20)).astype(np.float32))
        np.save(folder + "/mapped.npy", rng.normal(size=(4000, 128)))
        np.savez(folder + "/several.npz", a=np.arange(1000), b=rng.integers(0, 9, 1000))
        return
    whole = np.load(folder + "/whole.npy")
    print(whole[rng.integers(0, 300, 3)].sum(axis=1))
    mapped = np.load(folder + "/mapped.npy", mmap_mode="r")
    print(mapped[np.sort(rng.integers(0, 4000, 5))].sum(axis=1), mapped[-1, -1])
    several = np.load(folder + "/several.npz")
    print((several["a"] * several["b"]).sum())
    raw = np.memmap(folder + "/mapped.npy", dtype=np.uint8, mode="r", offset=0)
    print(raw[:6].tobytes(), raw.size)


main()
