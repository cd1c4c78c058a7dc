"""What test/sites and test/mutants share: running tests on a build that has something wrong in it, until one
of them notices.

A test is PROGRAM:FILTER, a test program of the build and which of its tests.
"""
import os
import pathlib
import random
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


class Bench:
    """The test programs of one build."""

    def __init__(self, build, seconds_max):
        self.build = pathlib.Path(build)
        self.seconds_max = seconds_max
        self.sound = {}  # Test -> what fails of it with nothing wrong.

    def run(self, test, wrong):
        """The name of the test that failed, or None. `wrong` is set in the environment."""
        program, _, filters = test.partition(":")
        command = [str(self.build / "bin" / program), f"--gtest_filter={filters}", "--gtest_fail_fast"]
        try:
            done = subprocess.run(command, env=dict(os.environ, **wrong), capture_output=True, text=True,
                                  errors="replace", timeout=self.seconds_max, cwd=self.build)
        except subprocess.TimeoutExpired:
            return f"{program}, which did not end"
        if "Running 0 tests" in done.stdout:
            raise SystemExit(f"{test}: there is no such test")
        if done.returncode in (0, 77):
            return None
        failed = re.findall(r"\[  FAILED  \] ([^ ,]+)", done.stdout)
        return (failed or re.findall(r"\[ RUN      \] (.*)", done.stdout)[-1:] or [program])[0]

    def notice(self, tests, wrong):
        """The first test that fails with something wrong and passes without, or None."""
        for test in tests:
            failed = self.run(test, wrong)
            if failed is None:
                continue
            if test not in self.sound:
                self.sound[test] = self.run(test, {})
            if self.sound[test] is None:
                return failed
            print(f"{test} fails with nothing wrong: {self.sound[test]}", file=sys.stderr)
        return None


def programs_of(tests):
    return sorted({test.partition(":")[0] for test in tests})


def drawn(names, count):
    """`count` of them, others at each commit."""
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout
    return random.Random(commit).sample(names, min(count, len(names)))


def value_of(arguments, option):
    """Takes `option VALUE` out of the arguments; None when it is not there."""
    if option not in arguments:
        return None
    at = arguments.index(option)
    value = arguments[at + 1]
    del arguments[at:at + 2]
    return value
