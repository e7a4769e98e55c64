# SPDX-License-Identifier: BSD-3-Clause
"""benchlib - what the experiments have in common

An experiment is a module of ../experiments with a docstring (its first line is its title) and a function run(bench). What it
finds it gives to `bench` (report.Report): samples, tables, plots, remarks. ../run makes files of them.
"""
from .report import Report
from .stats import median, quantile, spread

__all__ = ["Report", "median", "quantile", "spread"]
