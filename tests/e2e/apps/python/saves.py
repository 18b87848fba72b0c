"""Writes files as libraries do that go past the C library's functions: by syscall(), and as safetensors does."""
import ctypes
import os
import sys

import safetensors

OPENAT, MKDIRAT, UNLINKAT, RENAMEAT2, STATX, HERE = 257, 258, 263, 316, 332, -100
syscall = ctypes.CDLL(None, use_errno=True).syscall
os.chdir(sys.argv[1])


def call(number, *args):
    result = syscall(number, *args)
    return result if result >= 0 else os.strerror(ctypes.get_errno())


print(call(MKDIRAT, HERE, b"folder", 0o755))
made = call(OPENAT, HERE, b"folder/new", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
os.write(made, b"by syscall()")
os.close(made)
print(call(RENAMEAT2, HERE, b"folder/new", HERE, b"folder/old", 0), open("folder/old").read())
print(call(STATX, HERE, b"folder/old", 0, 0x7FF, ctypes.create_string_buffer(256)))
print(call(UNLINKAT, HERE, b"folder/old", 0), os.listdir("folder"))

safetensors.serialize_file({"weight": [1, 2, 3]}, "model", {"of": "saves"})
print(open("model").read(), sorted(os.listdir(".")))
try:
    safetensors.serialize_file({}, "no/folder")
except (OSError, safetensors.SafetensorError) as error:
    print(error)
