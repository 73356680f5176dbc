"""A report on a model: one HTML file that needs nothing else."""

from aucmax.report.page import write_report

__all__ = ["write_report"]
