"""Restore table models of earlier versions: what their states held, in the form of this one."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from aucmax.tables.columns import make_preprocessor
from aucmax.tables.table_features import TableFeatures


def renewed_state(state: dict[str, Any]) -> dict[str, Any]:
    """Return the state of a table model as of this version.

    Version 0.1 stored columns, preprocessor, and the negative and the positive label as ``classes_``.
    Later the columns were one JSON text. Now ``table_features_`` holds them.
    """
    state = dict(state)
    if isinstance(state.get("feature_names_in_"), str):
        state["feature_names_in_"] = np.array(json.loads(state["feature_names_in_"]), dtype=object)
    if isinstance(state.get("reference_"), str):  # models of earlier versions have none
        state["reference_"] = json.loads(state["reference_"])
    columns = state.pop("columns_", None)
    columns = json.loads(columns) if isinstance(columns, str) else columns
    if "classes_" in state and "positive_label_" not in state:
        names = [column["name"] for column in columns or ()]
        state["positive_label_"] = state["classes_"][1].item()
        state["classes_"] = np.sort(state["classes_"])
        state["feature_names_in_"] = np.array(names, dtype=object)
        state["n_features_in_"] = len(names)
    preprocessor = state.pop("preprocessor_", None)
    state.pop("feature_names_", None)
    if columns is not None:
        state["table_features_"] = _earlier_features(columns, preprocessor, state)
    if "classes_" in state:
        first, second = state["classes_"].tolist()
        state["negative_label_"] = first if second == state["positive_label_"] else second
        state.setdefault("other_labels_", [])
    return state


def _earlier_features(columns: list[Any], preprocessor: Any, state: dict[str, Any]) -> TableFeatures:
    """Return the preparation of columns that an earlier version stored in the model itself."""
    names = ("drop", "rare_level", "max_levels", "random_state")
    made = TableFeatures(**{name: state[name] for name in names if name in state})
    made.columns_, made.encodings_ = columns, {}
    made.preprocessor_ = make_preprocessor(columns) if preprocessor is None else preprocessor
    made.n_features_in_ = state.get("n_features_in_", len(columns))
    if "feature_names_in_" in state:
        made.feature_names_in_ = state["feature_names_in_"]
    return made
