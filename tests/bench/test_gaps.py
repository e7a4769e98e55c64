#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_gaps.py - how long a transfer stood still"""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench"))

from models.gaps import longest_gap  # pylint: disable=wrong-import-position


class Gaps(unittest.TestCase):
    """Times in seconds."""

    def test_between(self):
        """The longest of several, wherever it is."""
        self.assertEqual(longest_gap([1, 2, 5, 6], 0, 7), 3)
        self.assertEqual(longest_gap([1, 2, 5, 6], 5, 7), 1)

    def test_since(self):
        """What was before doesn't count: it was an outage, or there was no fault yet."""
        self.assertEqual(longest_gap([1, 9, 10], 8, 11), 1)
        self.assertEqual(longest_gap([0, 10, 10.5], 1, 11), 9)

    def test_never(self):
        """Nothing arrives any more."""
        self.assertEqual(longest_gap([1, 2], 2, 30), 28)
        self.assertEqual(longest_gap([], 2, 30), 28)


if __name__ == "__main__":
    unittest.main()
