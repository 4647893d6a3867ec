"""What each operator is: declarations, grouped by subject. Importing this package registers them all."""

from __future__ import annotations

import importlib
import pkgutil

for _module in pkgutil.walk_packages(__path__, f"{__name__}."):
    importlib.import_module(_module.name)
