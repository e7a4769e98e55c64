# SPDX-License-Identifier: BSD-3-Clause
# what distributions and hosts of containers take: packages and images that are built and used, each by a command of its own
EXTRA_DIST += tests/packages/container
