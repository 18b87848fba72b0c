"""Ranks that multiprocessing's spawn starts."""
