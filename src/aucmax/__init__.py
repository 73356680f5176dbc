"""Train models that rank: exact all-pairs AUC with kernels, behind scikit-learn's API."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "1.0.0rc1"

# Where each public name lives. They are loaded on first use: `import aucmax` must stay cheap.
_HOMES = {
    "KernelAUCClassifier": "aucmax.estimators.kernel",
    "LinearAUCClassifier": "aucmax.estimators.linear",
    "KernelAUCClassifierCV": "aucmax.estimators.search",
    "LinearAUCClassifierCV": "aucmax.estimators.search",
    "CVPathDisplay": "aucmax.inspection.displays",
    "ConvergenceDisplay": "aucmax.inspection.displays",
    "LandmarkCoverageDisplay": "aucmax.inspection.displays",
    "NystroemFeatures": "aucmax.features.nystroem",
    "FourierFeatures": "aucmax.features.fourier",
    "SGDAUCClassifier": "aucmax.estimators.streaming",
    "OAMClassifier": "aucmax.estimators.online",
    "SOLAMClassifier": "aucmax.estimators.online",
    "KernelRankSVM": "aucmax.estimators.rank_svm",
    "explain": "aucmax.inspection.explanation",
    "TableFeatures": "aucmax.tables",
    "TableModel": "aucmax.tables",
    "check_table": "aucmax.tables",
    "fit_table": "aucmax.tables",
    "predict_table": "aucmax.tables",
    "with_threshold": "aucmax.tables",
    "save_model": "aucmax.persistence.model_file",
    "load_model": "aucmax.persistence.model_file",
    "to_onnx": "aucmax.persistence.onnx_export",
    "write_report": "aucmax.report",
    "row_blocks": "aucmax.rows.sources",
    "metrics": "aucmax.metrics",
}

__all__ = [
    "CVPathDisplay",
    "ConvergenceDisplay",
    "FourierFeatures",
    "KernelAUCClassifier",
    "KernelAUCClassifierCV",
    "KernelRankSVM",
    "LandmarkCoverageDisplay",
    "LinearAUCClassifier",
    "LinearAUCClassifierCV",
    "NystroemFeatures",
    "OAMClassifier",
    "SGDAUCClassifier",
    "SOLAMClassifier",
    "TableFeatures",
    "TableModel",
    "check_table",
    "explain",
    "fit_table",
    "load_model",
    "metrics",
    "predict_table",
    "row_blocks",
    "save_model",
    "to_onnx",
    "with_threshold",
    "write_report",
]

if TYPE_CHECKING:
    from aucmax import metrics
    from aucmax.estimators.kernel import KernelAUCClassifier
    from aucmax.estimators.linear import LinearAUCClassifier
    from aucmax.estimators.online import OAMClassifier, SOLAMClassifier
    from aucmax.estimators.rank_svm import KernelRankSVM
    from aucmax.estimators.search import KernelAUCClassifierCV, LinearAUCClassifierCV
    from aucmax.estimators.streaming import SGDAUCClassifier
    from aucmax.features.fourier import FourierFeatures
    from aucmax.features.nystroem import NystroemFeatures
    from aucmax.inspection.displays import ConvergenceDisplay, CVPathDisplay, LandmarkCoverageDisplay
    from aucmax.inspection.explanation import explain
    from aucmax.persistence.model_file import load_model, save_model
    from aucmax.persistence.onnx_export import to_onnx
    from aucmax.report import write_report
    from aucmax.rows.sources import row_blocks
    from aucmax.tables import (
        TableFeatures,
        TableModel,
        check_table,
        fit_table,
        predict_table,
        with_threshold,
    )


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'aucmax' has no attribute {name!r}")
    module = import_module(_HOMES[name])
    return module if _HOMES[name] == f"aucmax.{name}" else getattr(module, name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
