"""Parity tests import torch; they are collected only when the marker is asked for."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
