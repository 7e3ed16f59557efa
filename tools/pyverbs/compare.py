#!/usr/bin/python3
"""Compares the verdicts of a run with those that are expected, test by test.

    compare.py [--soft SOFT-RESULTS] RESULTS EXPECTED

A test that does worse than expected is a failure, and so is one that does better, until the expectation
says so: every difference is printed with the line to change.  Reasons may differ.

The first lines of EXPECTED name the version of rdma-core that it is for, whose tests are others in each.  With
another one, only a test that fails and should pass is a failure.

--soft          RESULTS are a real device's, and what passes there must pass in SOFT-RESULTS.  Here EXPECTED names
                the kernel as well; with another kernel or rdma-core, what differs is told and is no failure
"""
import argparse
import sys

import verdicts


def line(test, got):
    return f"    {got.name:5} {test}" + (f"  # {got.reason}" if got.reason else "")


def differences(results, expected, path):
    for test, want in expected.items():
        got = results.get(test)
        if got is None:
            yield f"{path}:{want.line}: {test} is expected and was not run"
        elif got.name != want.name:
            yield f"{path}:{want.line}: expected {want.name}; the line would now be\n{line(test, got)}"
    for test, got in results.items():
        if test not in expected:
            yield f"{path}: a new test; the line would be\n{line(test, got)}"


def failures(results, expected, path):
    for test, want in expected.items():
        got = results.get(test, want)
        if want.name == "ok" and got.name not in ("ok", "skip"):
            yield f"{path}:{want.line}: expected ok\n{line(test, got)}"


def worse(soft, results):
    """What passes in results and not on soft."""
    absent = verdicts.Verdict("absent", "", 0)
    for test, theirs in results.items():
        mine = soft.get(test, absent)
        if theirs.name == "ok" and mine.name != "ok":
            yield f"ok on the real device, and on soft\n{line(test, mine)}"


def arguments():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--soft")
    parser.add_argument("results")
    parser.add_argument("expected")
    return parser.parse_args()


def other_basis(results, expected):
    """In which ways the results are not of what the expectations are for, as a sentence; empty when they are."""
    here = verdicts.basis(results)
    pairs = [(name, here.get(name), version) for name, version in verdicts.basis(expected).items()]
    return ", ".join(f"{name} here is {found} and not {wanted}" for name, found, wanted in pairs if found != wanted)


def main():
    options = arguments()
    results, expected = verdicts.read(options.results), verdicts.read(options.expected)
    for path, found in ((options.results, results), (options.expected, expected)):
        if not found:
            sys.exit(f"{path} has no verdict")
    other = other_basis(options.results, options.expected)
    if other and options.soft:
        print(f"{other}: what differs is told, and no failure")
    elif other:
        print(f"{other}: only what fails and should pass is told")
    compare = failures if other and not options.soft else differences
    told = list(compare(results, expected, options.expected))
    behind = list(worse(verdicts.read(options.soft), results)) if options.soft else []
    print("".join(text + "\n" for text in told + behind), end="")
    counted = f"pyverbs: {verdicts.count(results.values())}; {len(told)} not as expected"
    print(counted + (f"; {len(behind)} pass here and not on soft" if options.soft else ""))
    sys.exit(1 if behind or (told and not (other and options.soft)) else 0)


if __name__ == "__main__":
    main()
