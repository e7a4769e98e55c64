# SPDX-License-Identifier: BSD-3-Clause
"""plots.py - how the file of a plot says what it was drawn from, so that one that doesn't belong to its results is noticed"""
import hashlib
import json


def digest(plot):
    """What the file of a plot says of the data that it was drawn from."""
    return "drawn from SHA-256 " + hashlib.sha256(json.dumps(plot, sort_keys=True).encode()).hexdigest()
