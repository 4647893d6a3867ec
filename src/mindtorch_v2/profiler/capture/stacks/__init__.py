"""Python stacks, and Python functions as events."""
