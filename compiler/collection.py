"""Garbage collection while a program is made."""

import gc
from functools import wraps

__all__ = ["uncollected"]


def uncollected(function):
    """``function`` with the search for cyclic garbage put off until it returns.

    Compiling makes millions of small objects that live until it is done; looking through all of
    them again and again takes as long as the rest.
    """
    @wraps(function)
    def paused(*args, **kwargs):
        was = gc.isenabled()
        gc.disable()
        try:
            return function(*args, **kwargs)
        finally:
            if was:
                gc.enable()
    return paused
