"""Floats that know their error; blocks, threads, tallies, compiled loops."""
