"""Kernels of whole optimiser steps."""
