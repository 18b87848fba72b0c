"""What is shown in gdb of a trace: text, of which a terminal makes nothing else (as common/text/plain_text.h)."""
import unicodedata

# Controls, marks that are not seen or turn the direction of text, ends of lines, and bytes that were no UTF-8.
HIDDEN = {"Cc", "Cf", "Zl", "Zp", "Cs"}


def plain(text):
    return "".join(c if unicodedata.category(c) not in HIDDEN else written(c) for c in text)


def written(character):
    code = ord(character)
    if character in "\n\t":
        return "\\n" if character == "\n" else "\\t"
    return f"\\x{code:02x}" if code < 128 else f"\\u{{{code:x}}}"


def say(text=""):
    """One line."""
    print(plain(text))
