"""torch._functorch.batch_norm_replacement."""

from ..func.modules import replace_all_batch_norm_modules_

__all__ = ["replace_all_batch_norm_modules_"]
