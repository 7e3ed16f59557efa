"""What run.py has printed: verdicts and their reasons, by test."""
import collections
import re
import subprocess

Verdict = collections.namedtuple("Verdict", "name reason line")

VERSION = re.compile(r"# rdma-core (\S+)")
LINE = re.compile(r"(?P<name>[A-Za-z]+) +(?P<test>tests\.\S+)(?:  # (?P<reason>.*))?$")


def read(path):
    """The verdicts of a file, in its order; line is the line's number."""
    verdicts = {}
    with open(path, encoding="utf-8") as file:
        for number, text in enumerate(file, start=1):
            match = LINE.match(text.rstrip("\n"))
            if match:
                verdicts[match["test"]] = Verdict(match["name"], match["reason"] or "", number)
    return verdicts


def count(verdicts):
    """As a sentence: "86 ok, 187 skip"."""
    counted = collections.Counter(verdict.name for verdict in verdicts)
    return ", ".join(f"{number} {name}" for name, number in counted.most_common()) or "none"


def version(path):
    """The version of rdma-core that the file's first line names."""
    with open(path, encoding="utf-8") as file:
        return VERSION.match(file.readline())[1]


def package_version():
    """The version of rdma-core whose tests are installed."""
    command = ["dpkg-query", "--showformat=${source:Upstream-Version}", "--show", "python3-pyverbs"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
