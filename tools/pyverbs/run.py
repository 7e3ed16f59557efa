#!/usr/bin/python3
"""Runs pyverbs' own test suite, each test in a process of its own, and prints a line a test.

    run.py [--interface NAME] [--threads] TESTS-FOLDER DEVICE

The first line is the version of rdma-core.  A line is the verdict (ok, skip, FAIL, ERROR, CRASH, HANG), the
test's id, and the reason of what is not ok; the last line counts them.  A child process per test: a test
that crashes or hangs costs itself only, and each begins without what the one before has left.

TESTS-FOLDER    rdma-core's package "tests"; what Debian has compressed in it is unpacked elsewhere
--interface     the network interface whose address the tests of rdma_cm use: the suite looks for it in
                sysfs, where software devices have none
--threads       the two players of a test of rdma_cm are threads, not processes (see players.py)
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

PATIENCE = 60  # seconds a test may take; the slowest takes a few


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


def run_here(test, answer):
    """In the child: runs the test and writes its verdict."""
    result = unittest.TestResult()
    test.run(result)
    os.write(answer, "\t".join(verdict(result)).replace("\n", " ").encode()[:4000])


def kill_group(pid):
    """Ends the child and the processes that its test has started."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def run_apart(test):
    """Runs a test in a child process; its output goes nowhere."""
    reading, answer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        os.close(reading)
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        run_here(test, answer)
        os._exit(0)
    os.close(answer)
    deadline = time.monotonic() + PATIENCE
    ready, _, _ = select.select([reading], [], [], deadline - time.monotonic())
    text = os.read(reading, 5000).decode() if ready else None
    os.close(reading)
    # What a test leaves running may keep its process from ending.
    while text and time.monotonic() < deadline:
        if os.waitpid(pid, os.WNOHANG)[0]:
            kill_group(pid)
            return text.split("\t", 1)
        time.sleep(0.002)
    kill_group(pid)
    status = os.waitpid(pid, 0)[1]
    if text is None:
        return "HANG", f"no verdict within {PATIENCE} s"
    if text:
        return "HANG", "it ended, but its process did not; verdict: " + text.replace("\t", " ")
    return "CRASH", f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit status {status >> 8}"


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

    def add(self, device, port, gid_index):
        self.args.append([device, port, gid_index, *self.get_ip_mac_address(name)])

    RDMATestCase._get_ip_mac = add  # pylint: disable=protected-access


def arguments():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--interface")
    parser.add_argument("--threads", action="store_true")
    parser.add_argument("tests")
    parser.add_argument("device")
    return parser.parse_args()


def run(folder, options):
    sys.path[:0] = [os.path.dirname(folder), folder]
    sys.argv = ["run_tests.py", "--dev", options.device, "--port", "1"]
    import args_parser  # pylint: disable=import-error,import-outside-toplevel
    args_parser.parser.parse_args()
    loader = unittest.TestLoader()
    suite = loader.discover(folder, pattern="test_*.py", top_level_dir=os.path.dirname(folder))
    if options.interface:
        use_interface(options.interface)
    if options.threads:
        players.use_threads()
    print(f"# rdma-core {verdicts.package_version()}")
    counts = {}
    for test in flatten(suite):
        name, reason = run_apart(test)
        counts[name] = counts.get(name, 0) + 1
        print(f"{name:5} {test.id()}" + (f"  # {reason}" if reason else ""), flush=True)
    print(", ".join(f"{count} {name}" for name, count in sorted(counts.items(), key=lambda item: -item[1])))


def main():
    options = arguments()
    with tempfile.TemporaryDirectory() as parent:
        run(unpack(options.tests, parent), options)


if __name__ == "__main__":
    main()
