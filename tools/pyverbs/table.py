#!/usr/bin/python3
"""Writes the table of pyverbs' tests on soft and on rdma_rxe, as Markdown.

    table.py SOFT-VERDICTS RXE-VERDICTS >docs/pyverbs.md
"""
import re
import sys

import verdicts

INTRODUCTION = """# pyverbs' own tests, on the embedded provider and on rdma_rxe

Made of tools/pyverbs/expected, which `make pyverbs` writes; not edited by hand. A test checks each result: those
on the embedded provider by `make test`, those on rdma_rxe, in the virtual machine, by `make test-rxe`.

The suite is rdma-core {version}'s (package python3-pyverbs), unchanged. On the embedded provider it runs as
`rdmarun exec -- python3 tools/pyverbs/run.py --threads --interface lo ...`, on rdma_rxe of kernel {kernel} as
`tools/pyverbs/run.py --together --interface veth0 ...`.

`--interface` names the network interface with the address that the tests of rdma_cm use. The suite looks for it below the
device in sysfs, which neither of the two has. `--threads` makes the two players of a test of rdma_cm threads:
a device of the embedded provider is its process's own.

| | soft | rdma_rxe |
| --- | --- | --- |
{summary}
"""

VENDOR = re.compile(r"tests\.test_(mlx5|efa|cuda)")


def is_vendor_feature(test, mine, theirs):
    return bool(VENDOR.match(test)) and mine.name == theirs.name == "skip"


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


def pairs(soft, rxe):
    absent = verdicts.Verdict("absent", "", 0)
    for test in sorted(soft.keys() | rxe.keys()):
        yield test, soft.get(test, absent), rxe.get(test, absent)


def row(test, mine, theirs):
    name = test.removeprefix("tests.test_")
    return f"| {name} | {mine.name} | {theirs.name} | {cell(reasons(mine, theirs))} |"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    soft, rxe = verdicts.read(sys.argv[1]), verdicts.read(sys.argv[2])
    basis = verdicts.basis(sys.argv[2])
    print(INTRODUCTION.format(version=basis["rdma-core"], kernel=basis["kernel"],
                              summary="\n".join(summary(soft, rxe))))
    shown = [pair for pair in pairs(soft, rxe) if not is_vendor_feature(*pair)]
    hidden = len(soft.keys() | rxe.keys()) - len(shown)
    print(f"Left out below: {hidden} tests of the features of mlx5, efa and CUDA, skipped on both.\n")
    print("| test | soft | rdma_rxe | why not |\n| --- | --- | --- | --- |")
    print("\n".join(row(*pair) for pair in shown))


if __name__ == "__main__":
    main()
