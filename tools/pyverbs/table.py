#!/usr/bin/python3
"""Writes the table of pyverbs' tests on soft and on rdma_rxe, as Markdown.

    table.py SOFT-RESULTS RXE-RESULTS RXE-DEVICE >docs/pyverbs.md

Ends with 1 when a test passes on rdma_rxe and fails on soft.
"""
import re
import sys

import verdicts

INTRODUCTION = """# pyverbs' own tests, on the embedded provider and on rdma_rxe

Made by `make pyverbs`; not edited by hand. The suite is rdma-core {version}'s (package python3-pyverbs), unchanged.
On the embedded provider it runs as `rdmarun exec -- python3 tools/pyverbs/run.py --threads --interface lo ...`, on
rdma_rxe of kernel {kernel} as `tools/pyverbs/run.py --together --interface veth0 ...`.

`--interface` names the network interface whose address the tests of rdma_cm use: the suite looks for it below the
device in sysfs, where neither of the two has one. `--threads` makes the two players of a test of rdma_cm threads:
a device of the embedded provider is its process's own.

| | soft | rdma_rxe |
| --- | --- | --- |
{summary}
"""

VENDOR = re.compile(r"tests\.test_(mlx5|efa|cuda)")


def kernel(path):
    with open(path, encoding="utf-8") as file:
        return file.readline().strip()


def cell(text):
    return text.replace("|", r"\|")


def summary(soft, rxe):
    names = ["ok", "skip", *sorted({v.name for v in [*soft.values(), *rxe.values()]} - {"ok", "skip"})]
    for name in names:
        counts = [sum(v.name == name for v in verdict.values()) for verdict in (soft, rxe)]
        yield f"| {name} | {counts[0]} | {counts[1]} |"


def reasons(mine, theirs):
    """Why a test did not pass; once where both say the same."""
    if mine.reason == theirs.reason:
        return mine.reason
    named = (("soft", mine), ("rdma_rxe", theirs))
    return "; ".join(f"{name}: {verdict.reason}" for name, verdict in named if verdict.reason)


def rows(soft, rxe):
    absent = verdicts.Verdict("absent", "", 0)
    for test in sorted(soft.keys() | rxe.keys()):
        mine, theirs = soft.get(test, absent), rxe.get(test, absent)
        if VENDOR.match(test) and mine.name == theirs.name == "skip":
            continue
        name = test.removeprefix("tests.test_")
        yield f"| {name} | {mine.name} | {theirs.name} | {cell(reasons(mine, theirs))} |"


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    soft, rxe = verdicts.read(sys.argv[1]), verdicts.read(sys.argv[2])
    print(INTRODUCTION.format(version=verdicts.package_version(), kernel=kernel(sys.argv[3]),
                              summary="\n".join(summary(soft, rxe))))
    hidden = sum(bool(VENDOR.match(test)) for test in soft)
    print(f"Left out below: {hidden} tests of the features of mlx5, efa and CUDA, skipped on both.\n")
    print("| test | soft | rdma_rxe | why not |\n| --- | --- | --- | --- |")
    print("\n".join(rows(soft, rxe)))
    worse = [test for test, theirs in rxe.items() if theirs.name == "ok" and soft[test].name not in ("ok", "skip")]
    for test in worse:
        print(f"ok on rdma_rxe, and {soft[test].name} on soft: {test}", file=sys.stderr)
    sys.exit(1 if worse else 0)


if __name__ == "__main__":
    main()
