#!/usr/bin/env python3
"""Makes digits.txt from the copy of the UCI digits that Debian's python3-sklearn carries.

    apt-get download python3-sklearn && dpkg -x python3-sklearn_*.deb sklearn
    ./make_digits_txt.py sklearn/usr/lib/python3/dist-packages/sklearn/datasets/data/digits.csv.gz digits.txt

One line an image: 64 pixels row by row from the top left, a space, and the digit. A pixel is one character, 0-9 and
a-g for 0 to 16. The order is that of the source.
"""

import gzip
import sys

SHADES = "0123456789abcdefg"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    source, target = sys.argv[1:]
    lines = []
    with gzip.open(source, "rt", encoding="ascii") as rows:
        for number, row in enumerate(rows, 1):
            *pixels, label = (int(field) for field in row.split(","))
            if len(pixels) != 64 or not all(0 <= pixel <= 16 for pixel in pixels) or not 0 <= label <= 9:
                sys.exit(f"{source}:{number}: not 64 pixels of 0 to 16 and a digit")
            lines.append("".join(SHADES[pixel] for pixel in pixels) + f" {label}\n")
    if len(lines) != 1797:
        sys.exit(f"{source}: {len(lines)} images, not 1797")
    with open(target, "w", encoding="ascii") as out:
        out.writelines(lines)


if __name__ == "__main__":
    main()
