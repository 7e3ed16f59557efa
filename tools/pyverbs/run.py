#!/usr/bin/python3
"""Runs pyverbs' own test suite, each test in a process of its own, and prints a line a test.

    run.py [--interface NAME] [--threads] [--together] TESTS-FOLDER DEVICE

The first line is the version of rdma-core.  A line is the verdict (ok, skip, FAIL, ERROR, CRASH, HANG), the
test's id, and the reason of what is not ok.  A child process per test: a test that crashes or hangs costs
itself only, and each begins without what the one before has left.

TESTS-FOLDER    rdma-core's package "tests"; what Debian has compressed in it is unpacked elsewhere
--interface     the network interface whose address the tests of rdma_cm use: the suite looks for it in
                sysfs, where software devices have none
--threads       the two players of a test of rdma_cm are threads, not processes (see players.py)
--together      one process for all tests, until one ends it: where starting processes is slow
"""
import argparse
import gzip
import os
import pathlib
import select
import shutil
import signal
import sys
import tempfile
import time
import unittest

import players
import verdicts

WAIT_LIMIT = 60  # seconds a test may take; the slowest takes a few


def flatten(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from flatten(item)
        else:
            yield item


def verdict(result):
    """The verdict of a test that has ended, and its reason."""
    for name, entries in (("ERROR", result.errors), ("FAIL", result.failures)):
        if entries:
            return name, entries[0][1].strip().splitlines()[-1]
    if result.skipped:
        return "skip", result.skipped[0][1]
    return "ok", ""


def run_here(tests, answer):
    """In the child: runs tests and writes a line with the verdict of each."""
    for test in tests:
        result = unittest.TestResult()
        test.run(result)
        line = "\t".join(verdict(result)).replace("\n", " ")
        os.write(answer, line.encode()[:4000] + b"\n")


def start(tests):
    """A child process that runs tests, and what its verdicts are read from; its output goes nowhere."""
    reading, answer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        os.close(reading)
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        run_here(tests, answer)
        os._exit(0)
    os.close(answer)
    return pid, reading


def kill(pid):
    """Ends the child and the processes that its tests have started; the child's status."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    return os.waitpid(pid, 0)[1]


def ends(pid):
    """Whether the child ends by itself: what a test leaves running may keep it from that."""
    deadline = time.monotonic() + WAIT_LIMIT
    while time.monotonic() < deadline:
        # Not yet waited for: its process group's number is taken as long.
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            return True
        time.sleep(0.002)
    return False


def next_line(reading, buffer):
    """The next verdict's line; None at the end, TimeoutError when none comes."""
    deadline = time.monotonic() + WAIT_LIMIT
    while b"\n" not in buffer:
        if not select.select([reading], [], [], max(0, deadline - time.monotonic()))[0]:
            raise TimeoutError
        text = os.read(reading, 65536)
        if not text:
            return None
        buffer += text
    line, _, rest = bytes(buffer).partition(b"\n")
    buffer[:] = rest
    return line.decode()


def run_apart(tests):
    """Runs tests in one child process, and yields the verdict of each until one of them ends the child."""
    pid, reading = start(tests)
    buffer = bytearray()
    try:
        for number, test in enumerate(tests, start=1):
            line = next_line(reading, buffer)
            if line is None:
                status = kill(pid)
                signaled = os.WIFSIGNALED(status)
                yield test, "CRASH", f"signal {os.WTERMSIG(status)}" if signaled else f"exit status {status >> 8}"
                return
            if number == len(tests) and not ends(pid):
                yield test, "HANG", "it ended, but its process did not; verdict: " + line.replace("\t", " ")
            else:
                yield test, *line.split("\t", 1)
        kill(pid)
    except TimeoutError:
        kill(pid)
        yield test, "HANG", f"no verdict within {WAIT_LIMIT} s"
    finally:
        os.close(reading)


def run_all(tests, together):
    """The verdict of each test, with as few processes as asked for."""
    while tests:
        done = 0
        for answer in run_apart(tests if together else tests[:1]):
            done += 1
            yield answer
        tests = tests[done:]


def unpack(tests, parent):
    """Copies the package to parent/tests, uncompressed."""
    target = pathlib.Path(parent) / "tests"
    target.mkdir()
    for source in pathlib.Path(tests).iterdir():
        if source.suffix == ".gz":
            with gzip.open(source) as compressed:
                (target / source.stem).write_bytes(compressed.read())
        elif source.suffix == ".py":
            shutil.copy(source, target)
    return str(target)


def use_interface(name):
    """Gives the suite the interface that it would look for below the device in sysfs."""
    from tests.base import RDMATestCase  # pylint: disable=import-error,import-outside-toplevel

    address = RDMATestCase.get_ip_mac_address(name)  # once: it runs ip(8), which takes long in the VM

    def add(self, device, port, gid_index):
        self.args.append([device, port, gid_index, *address])

    RDMATestCase._get_ip_mac = add  # pylint: disable=protected-access


def arguments():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--interface")
    parser.add_argument("--threads", action="store_true")
    parser.add_argument("--together", action="store_true")
    parser.add_argument("tests")
    parser.add_argument("device")
    return parser.parse_args()


def run(folder, options):
    sys.path[:0] = [os.path.dirname(folder), folder]
    # The suite would look at all of rxe's 1024 GIDs for each test, and choose the first.
    sys.argv = ["run_tests.py", "--dev", options.device, "--port", "1", "--gid", "0"]
    import args_parser  # pylint: disable=import-error,import-outside-toplevel
    args_parser.parser.parse_args()
    loader = unittest.TestLoader()
    suite = loader.discover(folder, pattern="test_*.py", top_level_dir=os.path.dirname(folder))
    if options.interface:
        use_interface(options.interface)
    if options.threads:
        players.use_threads()
    print(f"# rdma-core {verdicts.package_version()}")
    for test, name, reason in run_all(list(flatten(suite)), options.together):
        print(f"{name:5} {test.id()}" + (f"  # {reason}" if reason else ""), flush=True)


def main():
    options = arguments()
    with tempfile.TemporaryDirectory() as parent:
        run(unpack(options.tests, parent), options)


if __name__ == "__main__":
    main()
