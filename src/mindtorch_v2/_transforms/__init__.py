"""Transforms of functions: vectorisation (`vmap`), and derivatives by going backward (`grad`) and forward (`jvp`)."""
