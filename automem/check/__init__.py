"""Checking a scaffold: everything that is wrong with it at once, by file and line, and what to do."""

from automem.check.checker import check
from automem.check.report import Finding, Report
from automem.check.show import show

__all__ = ["Finding", "Report", "check", "show"]
