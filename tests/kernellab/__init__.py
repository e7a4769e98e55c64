# SPDX-License-Identifier: BSD-3-Clause
"""kernellab - runs the lab's tests on kernels of Debian: what tests/kernels consists of

packages.py gets the kernels, machine.py boots them, in an emulator (emulator.py) or as programs of this machine (usermode.py, usermode.config,
usermode.sh), guest.sh and guest.py are what runs in there, and results.py makes tables of what the tests have said.
"""


class KernelError(Exception):
    """It can't go on; the text says why, and names the remedy."""
