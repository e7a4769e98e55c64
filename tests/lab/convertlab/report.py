# SPDX-License-Identifier: BSD-3-Clause
"""report.py - text for a terminal of 80 columns: headings, verdicts, bars

It prints colours only if stdout is a terminal and NO_COLOR (no-color.org) isn't set, and characters beyond ASCII only if stdout's
encoding has them.
"""
import os
import sys

WIDTH = 80
STYLES = {"bold": "1", "dim": "2", "good": "32", "bad": "1;31", "ours": "36"}
SIGNS = {"good": ("✓", "ok"), "bad": ("✗", "BAD"), "bar": ("█", "#"), "times": ("×", "x"), "link": ("═", "="),
         "arrow": ("→", "->")}


class Report:
    """Prints to stdout, each line as soon as it is known. `problems` are the verdicts that were bad."""

    def __init__(self):
        self.problems = []
        self._colours = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        self._column = 0 if self._can_print("".join(pair[0] for pair in SIGNS.values())) else 1

    @staticmethod
    def _can_print(text):
        try:
            text.encode(sys.stdout.encoding or "ascii")
            return True
        except (UnicodeEncodeError, LookupError):
            return False

    def sign(self, name):
        """A character, or what stands for it in ASCII."""
        return SIGNS[name][self._column]

    def style(self, name, text):
        """The text in one of STYLES."""
        return "\033[%sm%s\033[0m" % (STYLES[name], text) if self._colours else text

    @staticmethod
    def line(text=""):
        """Prints a line."""
        print(text, flush=True)

    def heading(self, left, right=""):
        """A heading, with something less important at the right margin."""
        gap = " " * max(2, WIDTH - len(left) - len(right))
        self.line()
        self.line(self.style("bold", left) + (gap + self.style("dim", right) if right else ""))

    def verdict(self, good, text, otherwise=None):
        """Prints that something is as it should be; or, if it isn't, `otherwise`, and remembers that."""
        if good:
            self.line("  %s %s" % (self.style("good", self.sign("good")), text))
        else:
            self.problems.append(otherwise or text)
            self.line("  %s %s" % (self.style("bad", self.sign("bad")), self.style("bad", otherwise or text)))
        return good

    def bar(self, share, width, style="dim"):
        """A bar as long as share (0 to 1) of width characters."""
        return self.style(style, self.sign("bar") * max(1, round(share * width)))
