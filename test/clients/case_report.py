"""What the suites of test/clients share: where the server is, and how results are printed.

The server is named by the environment, so that the same cases run against partita and against Azurite:

  TABLE_ENDPOINT   http://HOST:PORT/ACCOUNT, path style
  TABLE_ACCOUNT    the account's name
  TABLE_KEY        its key, base64
  TABLE_EXTRAS     "partita" when the server also has what test/clients/run starts partita with: a second
                   account, TLS and an admin address

Each case prints one line, `PASS <id>` or `FAIL <id>`, and what went wrong behind a failure. An id is the
suite, the section of the protocol reference, and a sentence that can be false.
"""
import os
import sys
import time
import traceback
import unittest
import uuid

ENDPOINT = os.environ.get("TABLE_ENDPOINT", "http://127.0.0.1:10002/devstoreaccount1")
ACCOUNT = os.environ.get("TABLE_ACCOUNT", "devstoreaccount1")
KEY = os.environ.get(
    "TABLE_KEY",
    # The key that everyone knows: table clients use it for local development.
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==")
EXTRAS = os.environ.get("TABLE_EXTRAS", "")

CONNECTION_STRING = ("DefaultEndpointsProtocol=%s;AccountName=%s;AccountKey=%s;TableEndpoint=%s;" %
                     (ENDPOINT.split(":", 1)[0], ACCOUNT, KEY, ENDPOINT))


def fresh_table_name(word="t"):
    """A name that no other run uses: the suites may run against a server that is not empty."""
    return word + uuid.uuid4().hex[:16]


class SectionCase(unittest.TestCase):
    """Cases about one section of the reference; the docstring of a test is its sentence."""
    suite = "?"
    section = "?"
    maxDiff = None

    def case_id(self):
        sentence = (self._testMethodDoc or self._testMethodName).strip().split("\n")[0]
        return "%s %s: %s" % (self.suite, self.section, sentence.rstrip("."))


class LineResult(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.passed = 0
        self.bad = 0

    def _say(self, word, test, error=None):
        name = test.case_id() if isinstance(test, SectionCase) else str(test)
        print("%s %s" % (word, name), flush=True)
        if error is not None:
            kind, value, trace = error
            lines = traceback.format_exception(kind, value, trace, limit=-4)
            print("".join("  | " + line + "\n" for line in "".join(lines).splitlines()[-24:]), end="", flush=True)

    def addSuccess(self, test):
        self.passed += 1
        self._say("PASS", test)

    def addError(self, test, err):
        self.bad += 1
        self._say("FAIL", test, err)

    def addFailure(self, test, err):
        self.addError(test, err)

    def addSkip(self, test, reason):
        # Only cases that need what the peer does not have are skipped, and only there.
        self._say("NONE", test)

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self._say("  in", subtest)


def main(module="__main__"):
    """Runs the cases of a module; arguments are words that an id must hold. The exit code is 0 if all passed."""
    words = sys.argv[1:]
    loader = unittest.TestLoader()
    result = LineResult()
    started = time.monotonic()

    wanted = unittest.TestSuite()

    def collect(suite):
        for part in suite:
            if isinstance(part, unittest.TestSuite):
                collect(part)
            elif all(w.lower() in part.case_id().lower() for w in words):
                wanted.addTest(part)

    collect(loader.loadTestsFromModule(sys.modules[module]))
    wanted.run(result)
    print("   %d passed, %d failed in %.1f s" % (result.passed, result.bad, time.monotonic() - started))
    sys.exit(0 if result.bad == 0 and result.passed > 0 else 1)
