# SPDX-License-Identifier: BSD-3-Clause
"""Checks of a test script, as lines of the Test Anything Protocol: tools/lib/test.py counts them."""
import sys


class Report:
    def __init__(self):
        self.n = self.failed = 0

    def ok(self, good, text, *why):
        """One check; why: lines that are only of interest when it failed."""
        self.n += 1
        self.failed += not good
        if not good:
            for line in why:
                print("# " + str(line), flush=True)
        print(f"{'ok' if good else 'not ok'} {self.n} - {text}", flush=True)
        return good

    def skip(self, text, why):
        self.n += 1
        print(f"ok {self.n} - {text} # SKIP {why}", flush=True)

    def end(self):
        print(f"1..{self.n}", flush=True)
        sys.exit(1 if self.failed else 0)
