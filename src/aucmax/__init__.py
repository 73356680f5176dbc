"""Train models that rank: exact all-pairs AUC with kernels, behind scikit-learn's API."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Where each public name lives. They are loaded on first use: `import aucmax` must stay cheap.
_HOMES = {
    "KernelAUCClassifier": "aucmax.classifiers",
    "LinearAUCClassifier": "aucmax.classifiers",
    "KernelAUCClassifierCV": "aucmax.search",
    "LinearAUCClassifierCV": "aucmax.search",
    "CVPathDisplay": "aucmax.display",
    "ConvergenceDisplay": "aucmax.display",
    "LandmarkCoverageDisplay": "aucmax.display",
    "NystroemFeatures": "aucmax.features.nystroem",
    "FourierFeatures": "aucmax.features.fourier",
    "SGDAUCClassifier": "aucmax.streaming",
    "OAMClassifier": "aucmax.baselines",
    "SOLAMClassifier": "aucmax.baselines",
    "KernelRankSVM": "aucmax.baselines",
    "TableModel": "aucmax.tables",
    "fit_table": "aucmax.tables",
    "save_model": "aucmax.model_file",
    "load_model": "aucmax.model_file",
    "to_onnx": "aucmax.onnx_export",
    "write_report": "aucmax.report",
    "row_blocks": "aucmax.sources",
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
    "TableModel",
    "fit_table",
    "load_model",
    "metrics",
    "row_blocks",
    "save_model",
    "to_onnx",
    "write_report",
]

if TYPE_CHECKING:
    from aucmax import metrics
    from aucmax.baselines import KernelRankSVM, OAMClassifier, SOLAMClassifier
    from aucmax.classifiers import KernelAUCClassifier, LinearAUCClassifier
    from aucmax.display import ConvergenceDisplay, CVPathDisplay, LandmarkCoverageDisplay
    from aucmax.features.fourier import FourierFeatures
    from aucmax.features.nystroem import NystroemFeatures
    from aucmax.model_file import load_model, save_model
    from aucmax.onnx_export import to_onnx
    from aucmax.report import write_report
    from aucmax.search import KernelAUCClassifierCV, LinearAUCClassifierCV
    from aucmax.sources import row_blocks
    from aucmax.streaming import SGDAUCClassifier
    from aucmax.tables import TableModel, fit_table


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'aucmax' has no attribute {name!r}")
    module = import_module(_HOMES[name])
    return module if _HOMES[name] == f"aucmax.{name}" else getattr(module, name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
