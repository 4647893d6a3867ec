"""Spools: recordings in files that are written while they go on, and read whatever ended them."""
