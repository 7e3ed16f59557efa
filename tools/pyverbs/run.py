#!/usr/bin/python3
"""Runs pyverbs' own test suite, each test in a process of its own, and prints a line a test.

    run.py TESTS-FOLDER DEVICE

TESTS-FOLDER holds rdma-core's package "tests", uncompressed.  A line is the verdict (ok, skip, FAIL, ERROR,
CRASH, HANG), the test's id, and the reason of what is not ok.  A child process per test: a test that crashes
or hangs costs itself only, and each begins without what the one before has left.
"""
import os
import select
import signal
import sys
import time
import unittest

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


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    folder, device = os.path.abspath(sys.argv[1]), sys.argv[2]
    sys.path[:0] = [os.path.dirname(folder), folder]
    sys.argv = ["run_tests.py", "--dev", device, "--port", "1"]
    from args_parser import parser  # pylint: disable=import-error,import-outside-toplevel
    parser.parse_args()
    loader = unittest.TestLoader()
    suite = loader.discover(folder, pattern="test_*.py", top_level_dir=os.path.dirname(folder))
    counts = {}
    for test in flatten(suite):
        name, reason = run_apart(test)
        counts[name] = counts.get(name, 0) + 1
        print(f"{name:5} {test.id()}" + (f"  # {reason}" if reason else ""), flush=True)
    print(", ".join(f"{count} {name}" for name, count in sorted(counts.items(), key=lambda item: -item[1])))


if __name__ == "__main__":
    main()
