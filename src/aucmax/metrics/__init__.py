"""What scores are worth: AUC and its intervals, thresholds, calibration, and evaluation."""

from aucmax.metrics.auc import AUCComparison, AUCInterval, compare_roc_auc, roc_auc, roc_auc_interval

__all__ = ["AUCComparison", "AUCInterval", "compare_roc_auc", "roc_auc", "roc_auc_interval"]
