"""What the system says of links, of what they lead to, and of which file is which.

    links.py FOLDER
"""
import os
import sys


def told(info):
    return [info.st_mode, info.st_size, info.st_mtime_ns, info.st_dev, info.st_ino]


def main():
    os.chdir(sys.argv[1])
    model = "blobs/model"
    print("link", os.readlink(model), os.path.islink(model), told(os.lstat(model)))
    print("target", told(os.stat(model)), told(os.stat("real/a")), os.path.samefile(model, "real/a"))
    with open(model) as f:
        print("open", f.read(3), told(os.fstat(f.fileno())) == told(os.stat(model)))
    with open("folder/a") as f:
        print("folder", f.read(3), sorted(os.listdir("folder")), os.path.realpath("folder/a"))
    print("dangling", os.path.lexists("nowhere"), os.path.exists("nowhere"), os.readlink("nowhere"))
    print("loop", os.path.lexists("loop"), os.path.exists("loop"))
    print("hard", os.path.samefile("real/a", "real/same"), os.path.samefile("real/a", "real/b"))
    print("no link", os.path.islink("real/a"), os.path.islink("absent"))
    real = os.open("real", os.O_RDONLY)
    print("by descriptor", told(os.fstat(real)) == told(os.stat("real")), os.stat("a", dir_fd=real).st_ino)
    for entry in sorted(os.scandir("."), key=lambda e: e.name):
        print(entry.name, entry.is_symlink(), told(entry.stat(follow_symlinks=False)))


if __name__ == "__main__":
    main()
