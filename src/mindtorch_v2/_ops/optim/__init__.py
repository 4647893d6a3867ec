"""Operators over lists of tensors, and whole optimiser steps."""
