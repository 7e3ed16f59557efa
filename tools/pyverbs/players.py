"""The two players of pyverbs' rdma_cm tests as threads of one process instead of two.

A soft device is its process's own, so that two processes cannot connect.  use_threads puts threads where
the suite asks multiprocessing for processes, and leaves everything else of a test as it is.

Python's global lock stands in the way: pyverbs keeps it while librdmacm waits, and the other player could
never cause what is waited for.  The library of interpreter_lock.c lets go of it there, and must be preloaded.
"""
import queue
import threading


class Player:
    """What the suite uses of multiprocessing.Process."""

    def __init__(self, target, kwargs):
        self.exitcode = None
        self._thread = threading.Thread(target=self._run, args=(target, kwargs), daemon=True)

    def _run(self, target, kwargs):
        try:
            target(**kwargs)
            self.exitcode = 0
        except SystemExit as end:
            self.exitcode = end.code
        except BaseException:  # pylint: disable=broad-except
            self.exitcode = 1

    def start(self):
        self._thread.start()

    def join(self, timeout=None):
        self._thread.join(timeout)

    def is_alive(self):
        return self._thread.is_alive()

    def terminate(self):
        """Nothing: the test's process ends, and its threads with it."""


class Context:
    """What the suite uses of multiprocessing.get_context."""
    Process = Player
    Queue = queue.Queue

    @staticmethod
    def Barrier(parties, timeout):  # pylint: disable=invalid-name
        return threading.Barrier(parties, timeout=timeout)


def use_threads():
    from tests import base  # pylint: disable=import-error,import-outside-toplevel

    base.mp.get_context = lambda _method: Context
