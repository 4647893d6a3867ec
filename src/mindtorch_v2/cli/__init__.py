"""The command line `mindtorch`."""
