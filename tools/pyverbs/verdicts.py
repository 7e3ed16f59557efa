"""What run.py has printed: verdicts and their reasons, by test, and what they were found with."""
import collections
import re
import subprocess

Verdict = collections.namedtuple("Verdict", "name reason line")

BASIS = re.compile(r"# (?P<name>\S+) (?P<version>\S+)$")
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


def basis(path):
    """What the file's first lines name: {"rdma-core": version}, and the kernel's where the device is the kernel's."""
    with open(path, encoding="utf-8") as file:
        matches = [BASIS.match(text) for text in file]
    return {match["name"]: match["version"] for match in matches if match}


def count(verdicts):
    """As a sentence: "86 ok, 187 skip"."""
    counted = collections.Counter(verdict.name for verdict in verdicts)
    return ", ".join(f"{number} {name}" for name, number in counted.most_common()) or "none"


def package_version():
    """The version of rdma-core whose tests are installed."""
    command = ["dpkg-query", "--showformat=${source:Upstream-Version}", "--show", "python3-pyverbs"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
