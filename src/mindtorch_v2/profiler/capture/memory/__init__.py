"""Storages that are made and freed, what the runtime knows them to be, and the heap."""
