"""The linear classifier: the exact minimiser of the all-pairs AUC loss on columns as they are."""

from __future__ import annotations

from typing import Any

from aucmax.estimators.ranking import RankingClassifier
from aucmax.fitting.attributes import MAX_STEPS, most_iterations
from aucmax.fitting.linear_fit import fit_linear
from aucmax.fitting.machines import LinearMachine
from aucmax.fitting.open_fit import open_fit
from aucmax.runtime.parameters import AUTO, COUNT, FLAG, NONE, PATH, VERBOSE, Number, declare


@declare(
    C=Number(),
    standardize=FLAG,
    tol=Number(high=1.0),
    max_iter=(AUTO, COUNT),
    time_budget=(NONE, Number()),
    checkpoint=(NONE, PATH),
    verbose=VERBOSE,
)
class LinearAUCClassifier(RankingClassifier):
    """Linear classifier that minimises the exact AUC loss: a ranking head for any features.

    The objective is that of :class:`KernelAUCClassifier` on the (standardised) features themselves;
    in the paper this is Linear RankSVM.

    Parameters
    ----------
    C
        Weight of the loss against the penalty, per average row.
    standardize
        Scale features to unit variance and, unless ``X`` is sparse, to zero mean.
    tol
        As in :class:`KernelAUCClassifier`, as are the parameters that follow.
    max_iter
        Most Newton steps. "auto" is 100.
    time_budget
        Seconds after which the fit takes the best it has.
    checkpoint
        A file that keeps what the fit has reached.
    verbose
        1 shows a live line.

    Attributes
    ----------
    coef_ : array of shape (k, n_features)
        In the units of ``X``: ``decision_function`` is ``X @ coef_.T + intercept_``. k is 1 for two
        classes, otherwise one per class.
    intercept_ : array of shape (k,)
    classes_, scaler_, objective_, history_, n_iter_, converged_
        As in :class:`KernelAUCClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from aucmax import LinearAUCClassifier
    >>> from aucmax.metrics import roc_auc
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LinearAUCClassifier().fit(X, y)
    >>> roc_auc(y, model.decision_function(X)) > 0.995
    True
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        standardize: bool = True,
        tol: float = 1e-4,
        max_iter: int | str = "auto",
        time_budget: float | None = None,
        checkpoint: Any = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.standardize = standardize
        self.tol = tol
        self.max_iter = max_iter
        self.time_budget = time_budget
        self.checkpoint = checkpoint
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LinearAUCClassifier:
        """Fit to rows ``X`` (n, d) and their classes ``y``.

        ``X`` may be an array, CSR matrix, data frame or file, as in :class:`KernelAUCClassifier`; so
        are ``y`` and ``sample_weight``.
        """
        with open_fit(self, X, y, sample_weight, takes=("files",)) as (problem, context):
            steps = most_iterations(self.max_iter, MAX_STEPS)
            machine, about = fit_linear(
                problem, float(self.C), self.standardize, self.tol, steps, context
            )
            self._keep(machine, classes_=problem.classes, **about)
        return self

    @property
    def machine_(self) -> LinearMachine:
        return LinearMachine(self.coef_, self.intercept_)
