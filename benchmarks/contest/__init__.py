"""The contest: aucmax beside boosted trees and other classifiers, on the same rows.

Each row of the contest is one method on one split, run in a process of its own, so that its peak of
resident memory is its own; what needs compiling or importing has done so before the clock starts. Rows
that stand in ``contest.jsonl`` already, in the folder of results or in docs/benchmarks, are not run
again. Test scores are kept beside the results, for DeLong's paired test against ``aucmax``.
"""

from benchmarks.contest.runner import COLUMNS, arguments, run, show

__all__ = ["COLUMNS", "arguments", "run", "show"]
