"""What `deja check` compares besides calls."""
