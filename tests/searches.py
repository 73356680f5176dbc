"""Estimators that hold others as tests write them: all parameters together."""

from aucmax import tables
from reliability.flat_parameters import build

#: Nothing is left to be tuned.
UNTUNED = {
    "kernel": "rbf",
    "gamma": "distance",
    "landmarks": "kmeans",
    "metric": None,
    "standardize": True,
}


def kernel_search(Cs="auto", **params):
    return build("KernelAUCClassifierCV", {"Cs": Cs, **UNTUNED, **params})


def linear_search(Cs="auto", **params):
    return build("LinearAUCClassifierCV", {"Cs": Cs, **params})


def table_model(**params):
    if params.get("gammas") is not None:
        params = {"gamma": "distance", **params}
    return build("TableModel", params)


def fit_table(table, target, **params):
    return tables.fit_table(table, target, **_of_table(params))


def plan_table(table, target, **params):
    return tables.plan_table(table, target, **_of_table(params))


def _of_table(params):
    """The parameters of ``fit_table``, with an estimator made of those that are not its own."""
    columns = {name: params.pop(name) for name in ("weight", "group") if name in params}
    return {**table_model(**params).get_params(deep=False), **columns}
