"""The two players of pyverbs' rdma_cm tests as threads of one process instead of two.

A soft device is its process's own, so that two processes cannot connect.  use_threads puts threads where
the suite asks multiprocessing for processes, and leaves everything else of a test as it is.

Python's global lock stands in the way: pyverbs keeps it while rdma_get_cm_event waits, and the other player
could never cause what is waited for.  So a player first waits, without that lock, until its event channel
is readable.  Where a function of librdmacm waits inside, nothing helps, and the test is skipped.
"""
import os
import queue
import select
import threading
import unittest

PATIENCE_MS = 30000  # a wait for an event; the suite's own patience is 15 s


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


def event_descriptors():
    """The descriptors of this process that are event channels, or of their kind."""
    found = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            if os.readlink(f"/proc/self/fd/{name}") == "anon_inode:[eventfd]":
                found.add(int(name))
        except FileNotFoundError:
            pass
    return found


class Channels:
    """Event channels with the descriptors that pyverbs does not tell."""

    def __init__(self, channel_type, event_type):
        self._channel_type = channel_type
        self._event_type = event_type
        self._descriptors = {}

    def create(self):
        """In place of CMEventChannel()."""
        while True:
            before = event_descriptors()
            channel = self._channel_type()
            made = event_descriptors() - before
            if len(made) == 1:
                self._descriptors[id(channel)] = made.pop()
                return channel
            channel.close()  # the other player has made one at the same time

    def next_event(self, channel):
        """In place of CMEvent(channel)."""
        readable = select.poll()
        readable.register(self._descriptors[id(channel)], select.POLLIN)
        if not readable.poll(PATIENCE_MS):
            raise TimeoutError("no event of the connection manager")
        return self._event_type(channel)


LOCKED = {
    "test_rdmacm_sync_traffic": "rdma_connect",
    "test_rdmacm_async_ex_leave_multicast_traffic": "rdma_get_recv_comp",
}


def skip(function):
    """A test that cannot be played by threads."""
    reason = f"{function} would wait with Python's lock, which the other player needs"
    return unittest.skip(reason)(lambda self: None)


def use_threads():
    # pylint: disable=import-error,import-outside-toplevel
    from tests import base, base_rdmacm, rdmacm_utils, test_rdmacm

    channels = Channels(base_rdmacm.CMEventChannel, rdmacm_utils.CMEvent)
    base_rdmacm.CMEventChannel = channels.create
    rdmacm_utils.CMEvent = channels.next_event
    base.mp.get_context = lambda _method: Context
    for test, function in LOCKED.items():
        setattr(test_rdmacm.CMTestCase, test, skip(function))
