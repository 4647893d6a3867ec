"""Forked processes for tests."""

import os
import signal
import traceback
import warnings

SECONDS = 60  # after which a child is taken to hang


def in_child(function):
    """Run a function in a forked process that is ended when it hangs; returns its status, 0 if all is well."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of forks in processes with threads
        pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(SECONDS)
        status = 1
        try:
            function()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return os.waitpid(pid, 0)[1]
