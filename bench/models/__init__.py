# SPDX-License-Identifier: BSD-3-Clause
"""models - what the experiments compute: distributions, densities, counts; without processes, files or network, so that it is unit-tested

tests/bench/ has a test for each.
"""
