#!/usr/bin/python3
"""Compares the verdicts of a run with those that are expected, test by test.

    compare.py RESULTS EXPECTED

A test that does worse than expected is a failure, and so is one that does better, until the expectation
says so: every difference is printed with the line to change.  Reasons may differ.

The first line of EXPECTED names the version of rdma-core that it is for.  With another version, whose tests
are others, only a test that fails and should pass is a difference.
"""
import sys

import verdicts


def differences(results, expected, path):
    for test, want in expected.items():
        got = results.get(test)
        if got is None:
            yield f"{path}:{want.line}: {test} is expected and was not run"
        elif got.name != want.name:
            reason = f"  # {got.reason}" if got.reason else ""
            yield f"{path}:{want.line}: expected {want.name}; the line would now be\n    {got.name:5} {test}{reason}"
    for test, got in results.items():
        if test not in expected:
            reason = f"  # {got.reason}" if got.reason else ""
            yield f"{path}: a new test; the line would be\n    {got.name:5} {test}{reason}"


def failures(results, expected, path):
    for test, want in expected.items():
        got = results.get(test, want)
        if want.name == "ok" and got.name not in ("ok", "skip"):
            yield f"{path}:{want.line}: expected ok\n    {got.name:5} {test}  # {got.reason}"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    results, expected = verdicts.read(sys.argv[1]), verdicts.read(sys.argv[2])
    if not expected:
        sys.exit(f"{sys.argv[2]} expects nothing")
    version, wanted = verdicts.package_version(), verdicts.version(sys.argv[2])
    if version == wanted:
        found = list(differences(results, expected, sys.argv[2]))
    else:
        print(f"rdma-core here is {version} and not {wanted}: only what fails and should pass is told")
        found = list(failures(results, expected, sys.argv[2]))
    for text in found:
        print(text)
    print(f"pyverbs: {verdicts.count(results.values())}; {len(found)} not as expected")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
