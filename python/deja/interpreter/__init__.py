"""Python's interpreter: its frames, its exceptions, and its debugger in a replay."""
