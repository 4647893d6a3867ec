"""Backends: where kernels run. Each says how the body that calls its kernels is made."""

from .._dispatch import dispatcher, keys
from .cpu.machinery.adapter import cpu_body
from .meta.adapter import meta_body

dispatcher.register_backend(keys.CPU, cpu_body)
dispatcher.register_backend(keys.META, meta_body)
