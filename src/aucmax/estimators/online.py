"""Two online classifiers that the paper compares with."""

from __future__ import annotations

from typing import Any

from aucmax.estimators.streaming import SHARED, STEPS, StreamingClassifier
from aucmax.fitting.stream_fit import LearnerKind
from aucmax.runtime.parameters import Number, declare
from aucmax.solvers.stochastic import OAM, SOLAM

__all__ = ["OAMClassifier", "SOLAMClassifier"]

#: The rows of each class that SOLAM samples from a stream, for the threshold of ``predict`` alone.
_THRESHOLD_ROWS = 1000


@declare(C=Number(), buffer_size=STEPS, **SHARED)
class OAMClassifier(StreamingClassifier):
    """Online AUC maximisation, sequential variant (Zhao, Hoi, Jin and Yang, ICML 2011).

    Each row that arrives takes a passive-aggressive step, for the pairwise hinge loss, against every
    row in a small buffer of the other class; buffers are kept by reservoir sampling. On Nyström
    features this is the paper's NOAM.

    Parameters
    ----------
    C
        Bound on a step: at most ``C/2`` times the number of rows that a buffered row stands for.
    buffer_size
        The number of rows of each class in the buffers.
    epochs
        Number of passes of ``fit`` over the rows, each in a new random order.
    standardize, trace, early_stopping, validation_fraction, n_iter_no_change, tol, random_state,
    verbose
        As in :class:`SGDAUCClassifier`.

    Attributes
    ----------
    coef_, intercept_, classes_, history_, n_iter_, rows_seen_
        As in :class:`SGDAUCClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from aucmax import OAMClassifier
    >>> from aucmax.metrics import roc_auc
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = OAMClassifier(random_state=0).fit(X, y)
    >>> roc_auc(y, model.decision_function(X)) > 0.98
    True
    """

    def __init__(
        self,
        C: float = 0.01,
        *,
        buffer_size: int = 100,
        epochs: int = 1,
        standardize: bool = True,
        trace: str | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 3,
        tol: float = 1e-4,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        stopping = (trace, early_stopping, validation_fraction, n_iter_no_change, tol)
        super().__init__(epochs, standardize, *stopping, random_state)
        self.verbose = verbose
        self.C = C
        self.buffer_size = buffer_size

    def _learner_kind(self) -> LearnerKind:
        size = int(self.buffer_size)
        return LearnerKind(lambda n, dtype, *_: OAM(n, dtype, C=self.C, buffer_size=size))


@declare(zeta=Number(), radius=Number(), **SHARED)
class SOLAMClassifier(StreamingClassifier):
    """Stochastic online AUC maximisation (Ying, Wen and Lyu, NIPS 2016).

    The squared loss over all pairs is written as a saddle point, so that each row alone gives a
    gradient and no buffer is needed. The share of positives is estimated along the way; the result is
    the average of the iterates by their step sizes. On Nyström features this is the paper's NSOLAM.

    Parameters
    ----------
    zeta
        The t-th step is ``zeta / sqrt(t)``.
    radius
        Bound on the norm of the coefficients.
    epochs
        Number of passes of ``fit`` over the rows, each in a new random order.
    standardize, trace, early_stopping, validation_fraction, n_iter_no_change, tol, random_state,
    verbose
        As in :class:`SGDAUCClassifier`.

    Attributes
    ----------
    coef_, intercept_, classes_, history_, n_iter_, rows_seen_
        As in :class:`SGDAUCClassifier`.

    Notes
    -----
    With a step that is long for the rows (``zeta`` far above 1 over their mean squared norm) the
    iterates bounce off the bound. Kernel features have norms of at most 1.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from aucmax import SOLAMClassifier
    >>> from aucmax.metrics import roc_auc
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = SOLAMClassifier(zeta=0.05, random_state=0).fit(X, y)
    >>> roc_auc(y, model.decision_function(X)) > 0.98
    True
    """

    def __init__(
        self,
        zeta: float = 1.0,
        radius: float = 100.0,
        *,
        epochs: int = 15,
        standardize: bool = True,
        trace: str | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 3,
        tol: float = 1e-4,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        stopping = (trace, early_stopping, validation_fraction, n_iter_no_change, tol)
        super().__init__(epochs, standardize, *stopping, random_state)
        self.verbose = verbose
        self.zeta = zeta
        self.radius = radius

    def _learner_kind(self) -> LearnerKind:
        sizes: Any = {"zeta": self.zeta, "radius": self.radius, "buffer_size": _THRESHOLD_ROWS}
        return LearnerKind(lambda n, dtype, *_: SOLAM(n, dtype, **sizes))
