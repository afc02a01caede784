"""A simulator that is built while something else goes on."""

import threading

from sim.progress import say
from sim.rtl.build import build_rtl

__all__ = ["BackgroundBuild"]


class BackgroundBuild(threading.Thread):
    """A simulator, built while something else goes on.

    Parameters
    ----------
    system : SystemConfig
    options : dict
        Of `sim.rtl.build.build_rtl`.
    """

    def __init__(self, system, options):
        super().__init__(daemon=True)
        self._system = system
        self._options = options
        self._model = self._error = None
        self.start()

    def run(self):
        try:
            self._model = build_rtl(self._system, report=say, **self._options)
        except Exception as error:      # raised again where it is waited for
            self._error = error

    def model(self):
        """The build; raises what broke it."""
        self.join()
        if self._error:
            raise self._error
        return self._model
