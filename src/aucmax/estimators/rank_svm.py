"""The exact kernel machine, which the paper compares with."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from aucmax.estimators.ranking import RankingClassifier
from aucmax.features.bandwidth import GAMMA
from aucmax.features.kernels import KERNELS, KernelSpec
from aucmax.features.nystroem import COEF0, DEGREE
from aucmax.fitting.machines import SupportMachine
from aucmax.fitting.open_fit import open_fit
from aucmax.fitting.rank_svm_fit import RankSVMRecipe, fit_rank_svm
from aucmax.runtime.parameters import (
    BYTES,
    COUNT,
    FLAG,
    NONE,
    PATH,
    RANDOM_STATE,
    VERBOSE,
    Number,
    OneOf,
    declare,
)

__all__ = ["KernelRankSVM"]


@declare(
    C=Number(),
    kernel=OneOf(*KERNELS),
    gamma=GAMMA,
    degree=DEGREE,
    coef0=COEF0,
    subsample=Number(high=1.0),
    standardize=FLAG,
    tol=Number(high=1.0),
    max_iter=COUNT,
    max_memory=(NONE, BYTES),
    checkpoint=(NONE, PATH),
    random_state=RANDOM_STATE,
    verbose=VERBOSE,
)
class KernelRankSVM(RankingClassifier):
    """The exact kernel machine: squared hinge over all pairs, a coefficient for every training row.

    The objective is that of :class:`KernelAUCClassifier` with no landmarks in between, so that the two
    agree when every row is a landmark. Cost grows with the square of the rows: this is the yardstick
    (RBF-RankSVM of Kuo, Lee and Lin, 2014, in the paper), not a tool for every day. With more than 4000
    rows, the solve starts from a machine with 1600 landmarks, and they precondition it.

    Parameters
    ----------
    C
        Weight of the loss against the penalty, per average row.
    kernel
        The kernel.
    gamma
        Its bandwidth on the standardised rows; see :class:`NystroemFeatures`.
    degree
        Degree of the polynomial kernel.
    coef0
        Constant of the polynomial kernel.
    subsample
        Share of the rows of each class to learn from, drawn at random; the paper's variant takes 0.2.
    standardize
        Scale features to unit variance and, unless ``X`` is sparse, to zero mean.
    tol
        Relative distance to the minimum, estimated by the Newton decrement, at which to stop.
    max_iter
        Most Newton steps.
    max_memory
        Memory for the kernel matrix, in bytes or as "4GB"; None is four fifths of what is free. Half
        of the matrix is needed, as it is symmetric: 12.8 GB for 80,000 rows. What does not fit is
        computed again in each product, and a warning says before the start how long a product takes.
    checkpoint
        A file that keeps the coefficients, written after each Newton step; see
        :class:`KernelAUCClassifier`.
    random_state
        Seed of ``subsample`` and of the landmarks.
    verbose
        1 shows a live line, after each product with the kernel matrix.

    Attributes
    ----------
    dual_coef_ : array of shape (k, n_support)
    feature_importances_ : array of shape (n_features,)
        Each feature's share of the mean squared gradient of the score, at the support rows.
    support_rows_ : array of shape (n_support, n_features)
        Standardised training rows with a coefficient other than 0.
    gamma_ : float
    classes_, scaler_, intercept_, objective_, history_, n_iter_, converged_
        As in :class:`KernelAUCClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from aucmax import KernelRankSVM
    >>> from aucmax.metrics import roc_auc
    >>> X, y = make_moons(300, noise=0.2, random_state=0)
    >>> model = KernelRankSVM(gamma=2.0).fit(X, y)
    >>> roc_auc(y, model.decision_function(X)) > 0.98
    True
    """

    def __init__(
        self,
        C: float = 10.0,
        *,
        kernel: str = "rbf",
        gamma: str | float = "distance",
        degree: int = 3,
        coef0: float = 1.0,
        subsample: float = 1.0,
        standardize: bool = True,
        tol: float = 1e-4,
        max_iter: int = 100,
        max_memory: int | str | None = None,
        checkpoint: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.subsample = subsample
        self.standardize = standardize
        self.tol = tol
        self.max_iter = max_iter
        self.max_memory = max_memory
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelRankSVM:
        """Fit to rows ``X`` (n, d), an array, CSR matrix or data frame, and their classes ``y``.

        A row of ``sample_weight`` 0 is ignored.
        """
        with open_fit(self, X, y, sample_weight) as (problem, context):
            names = RankSVMRecipe.__dataclass_fields__
            recipe = RankSVMRecipe(**{name: getattr(self, name) for name in names})
            machine, about = fit_rank_svm(problem, recipe, context)
            self._keep(machine, classes_=problem.classes, **about)
        return self

    @property
    def feature_importances_(self) -> npt.NDArray[Any]:
        """Each column's share of the mean squared gradient of the score, at the support rows."""
        if not hasattr(self, "support_rows_"):
            raise AttributeError("KernelRankSVM has feature_importances_ once it is fitted.")
        return np.asarray(self.machine_.importances())

    @property
    def machine_(self) -> SupportMachine:
        spec = KernelSpec(self.kernel, self.gamma_, self.degree, self.coef0)
        return SupportMachine(self.scaler_, self.support_rows_, self.dual_coef_, self.intercept_, spec)
