"""Hooks that average a bucket as it is, or in a shorter type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .... import _dtype
from ....futures import Future
from ...distributed_c10d import own_group
from ...reducer import GradBucket, Hook

if TYPE_CHECKING:
    from ...._dtype import dtype
    from ...process_group import ProcessGroup

__all__ = ["allreduce_hook", "bf16_compress_hook", "bf16_compress_wrapper", "fp16_compress_hook", "fp16_compress_wrapper"]


def allreduce_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Future[Any]:
    """Average the gradients of all processes, as without a hook."""
    group = own_group(process_group)
    flat = bucket.buffer().div_(group.size())
    return group.allreduce([flat]).get_future().then(lambda future: future.value()[0])


def _compress_hook(dtype: dtype, process_group: ProcessGroup | None, bucket: GradBucket) -> Future[Any]:
    group = own_group(process_group)
    flat = bucket.buffer()
    short = flat.to(dtype).div_(group.size())
    return group.allreduce([short]).get_future().then(lambda future: flat.copy_(future.value()[0]))


def fp16_compress_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Future[Any]:
    """Average the gradients in half precision, which halves what is sent."""
    return _compress_hook(_dtype.float16, process_group, bucket)


def bf16_compress_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Future[Any]:
    """Average the gradients in bfloat16, which halves what is sent."""
    return _compress_hook(_dtype.bfloat16, process_group, bucket)


def _wrapped(dtype: dtype, hook: Hook) -> Hook:
    def wrapper(hook_state: Any, bucket: GradBucket) -> Future[Any]:
        flat = bucket.buffer()
        bucket.set_buffer(flat.to(dtype))

        def back(future: Future[Any]) -> Any:
            bucket.set_buffer(flat)
            value = future.value()
            return flat.copy_(value[0] if isinstance(value, list | tuple) else value)

        return hook(hook_state, bucket).then(back)

    return wrapper


def fp16_compress_wrapper(hook: Hook) -> Hook:
    """A hook that gets its buckets in half precision."""
    return _wrapped(_dtype.float16, hook)


def bf16_compress_wrapper(hook: Hook) -> Hook:
    """A hook that gets its buckets in bfloat16."""
    return _wrapped(_dtype.bfloat16, hook)
