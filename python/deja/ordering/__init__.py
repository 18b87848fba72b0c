"""Replacements of Python's classes whose order depends on the interpreter's lock."""
