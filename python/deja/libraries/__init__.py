"""Other libraries that need something from Deja."""
