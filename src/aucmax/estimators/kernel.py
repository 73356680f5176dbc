"""The kernel classifier: the exact minimiser of the all-pairs AUC loss on kernel features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from aucmax.estimators.ranking import RankingClassifier
from aucmax.features.bandwidth import GAMMA
from aucmax.features.fourier import FOURIER_KERNELS
from aucmax.features.kernels import BOTH, LANDMARK_KERNELS, RADIAL
from aucmax.features.landmarks import STRATEGIES
from aucmax.features.nystroem import COEF0, DEGREE, NystroemFeatures
from aucmax.fitting.blend_fit import blended
from aucmax.fitting.kernel_fit import fit_machines, narrowed, plan_unfitted
from aucmax.fitting.machines import Blend, Fitted, KernelMachine
from aucmax.fitting.open_fit import open_fit
from aucmax.fitting.problem import Problem
from aucmax.fitting.recipe import Recipe
from aucmax.fitting.settings import Settings
from aucmax.operators.placement import EXPECTED_PASSES, Plan
from aucmax.rows.interface import as_rows
from aucmax.runtime.memory import Budget
from aucmax.runtime.parameters import (
    AUTO,
    BYTES,
    COUNT,
    FLAG,
    NONE,
    PATH,
    POINTS,
    RANDOM_STATE,
    VERBOSE,
    Number,
    OneOf,
    declare,
    is_auto,
)
from aucmax.tuning.resolve import (
    Asked,
    Machine,
    Resolved,
    most_machines,
    most_with_second_kernel,
    resolve,
    seconds_of_tuning,
)
from aucmax.tuning.trials import TrialKernel

__all__ = ["KernelAUCClassifier", "ask", "plan_kernel"]

#: Settings that, if left at "auto", are a reason to tune; a kernel on its own is none.
_NEEDED = ("C", "gamma", "n_landmarks", "landmarks", "standardize")


@declare(
    C=(AUTO, Number()),
    preset=OneOf("paper", None),
    effort=Number(),
    kernel=OneOf("auto", *LANDMARK_KERNELS),
    gamma=(AUTO, *GAMMA),
    degree=DEGREE,
    coef0=COEF0,
    n_landmarks=(AUTO, COUNT),
    landmarks=(OneOf("auto", *STRATEGIES), POINTS),
    metric=OneOf("auto", "learned", "full", None),
    feature_map=OneOf("nystroem", "fourier"),
    solver=OneOf("newton", "sgd"),
    standardize=(OneOf("auto", "quantile"), FLAG),
    tol=Number(high=1.0),
    max_iter=(AUTO, COUNT),
    time_budget=(NONE, Number()),
    max_memory=(NONE, BYTES),
    checkpoint=(NONE, PATH),
    random_state=RANDOM_STATE,
    verbose=VERBOSE,
)
class KernelAUCClassifier(RankingClassifier):
    """Nonlinear classifier that minimises the exact AUC loss over all positive-negative pairs.

    Rows are standardised and mapped to kernel features ``phi``; the solver finds the minimiser of ::

        1/2 ||w||^2 + C n/(n_pos n_neg) sum_{i in +, j in -} max(0, 1 - w.(phi_i - phi_j))^2

    in time that does not depend on the number of pairs. With ``preset="paper"`` this is NBAUC of
    Khalid, Ray and Chitsaz (2018), with ``feature_map="fourier"`` their RFAUC and with ``solver="sgd"``
    their NSAUC.

    Parameters
    ----------
    C
        Weight of the loss against the penalty, per average row, as in ``SVC``. The best was 1 to 130 on
        the paper's data, and often rises with the number of rows.
    preset
        What "auto" stands for. None tunes on a sample of the rows, part of them held out (see Notes).
        "paper" takes the settings of Khalid, Ray and Chitsaz, without any trial: 1600 k-means centres
        as landmarks (``landmarks="centroids"``), the rbf kernel with their bandwidth
        (``gamma="paper"``), standardised columns, no metric; and C=10, which they search for. A
        parameter that is given overrides the preset.
    effort
        How much work "auto" may cost: 1 allows landmarks for about 1 s and 0.2 ms per row on two
        cores, at most a minute; 4 for four times as long, with larger samples. From 2 on, up to four
        machines are blended (``parts_``). Below 1 trials use fewer
        rows and landmarks, and below 0.5 less is tried. It is computed from the size of the data, not
        timed.
    kernel
        "auto" is "rbf", or the mean of it and the laplacian ("rbf+laplacian") if that ranks held-out
        rows better and twice the work is within the effort. It is "rbf" without trials and with
        ``metric="full"``. "polynomial" and "linear" are not tuned: "auto" is then as in the paper, but
        for 1000 landmarks.
    gamma
        Bandwidth of the kernel on the standardised rows; see :class:`NystroemFeatures`.
    degree
        Degree of the polynomial kernel.
    coef0
        Constant of the polynomial kernel.
    n_landmarks
        The number of landmarks (or Fourier features). "auto" is 1000, or more if that ranks held-out
        rows better; or every row if there are fewer.
    landmarks
        How landmarks are chosen; see :class:`NystroemFeatures`. An array is in units of standardised
        rows. "auto" is "class-kmeans" unless another strategy is better.
    metric
        Whether columns are stretched by how steeply the learnt score changes with them, and the
        machine fitted again, up to three times; each time counts only if it ranks held-out rows better
        beyond noise. "auto" and "learned" stretch columns ("learned" warns if it cannot), "full"
        stretches in any direction, None does not.
    feature_map
        Features from landmarks, or random Fourier features, which are not tuned.
    solver
        "newton" finds the minimum. "sgd" is the paper's Algorithm 3 with its hinge loss, as in
        :class:`SGDAUCClassifier` with its defaults: less exact, and faster with many rows and a large
        C. It is not tuned.
    standardize
        True scales columns to unit variance and, unless ``X`` is sparse, to zero mean; "quantile"
        maps them to normal scores by rank, which helps with long tails; False leaves them as they are,
        which may help if they are all of one kind. "auto" is the best of the three.
    tol
        Relative distance to the minimum, estimated by the Newton decrement, at which to stop.
    max_iter
        Most Newton steps, or epochs of "sgd". "auto" is 100 steps, or 20 epochs.
    time_budget
        Seconds after which the fit takes the best it has, tuning included. About half of them go into
        tuning, which tries less the fewer they are; the solver stops where it is, with a warning. A fit
        without any result by then raises ``TimeoutError``.
    max_memory
        Memory that a fit may use, in bytes or as "4GB"; None is four fifths of what is free. Kernel
        values that do not fit are computed again in every pass or kept on disk, whichever is faster by
        measurement; the minimum is the same. With Dask collections it limits all workers together.
    checkpoint
        A file that keeps what the fit has reached, written after each Newton step or epoch, though
        for no more than a twentieth of the time. A fit of the same data and parameters resumes from
        it; another fit refuses it. It is removed when the fit is done.
    random_state
        Seed of the landmarks and of everything else drawn at random.
    verbose
        1 shows a live line: objective, estimated distance to the optimum, training AUC.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Sorted; the second of two is the positive one.
    settings_ : dict
        The values used for C, gamma, n_landmarks, landmarks, standardize and kernel.
    metric_ : array of shape (d,) or (d, d), or None
        What standardised rows are multiplied by; part of ``scaler_``.
    trials_ : list of dict
        What was tried: the AUC on held-out rows, at which C and multiple of the distance rule, and
        whether it was kept.
    feature_importances_ : array of shape (d,)
    coverage_ : array of shape (n_classes,)
        How well the landmarks cover each class: the mean share of ``k(x, x)`` that features keep; 1 is
        all of it. A class far below the other needs ``landmarks="class-kmeans"`` or more landmarks;
        :class:`LandmarkCoverageDisplay` shows distances.
    parts_ : list of KernelAUCClassifier
        The other machines of a blend, fitted, if ``effort`` is at least 2; the attributes here are
        those of the first. Scores are the sum of all machines' by ``weights_``, and ``intercept_`` is
        the blend's.
    weights_ : array of shape (1 + number of parts,)
    feature_map_ : NystroemFeatures or FourierFeatures
    scaler_ : StandardScaler, or one of this package's scalers, or None
    dual_coef_ : array of shape (k, n_landmarks)
        Weights over landmarks (or Fourier features); with "rbf+laplacian" twice as many, those of the
        rbf first. k is 1 for two classes, otherwise one per class.
    intercept_ : array of shape (k,)
        Minus the learnt threshold.
    place_ : {"memory", "projected", "disk", "recomputed"}
        Where kernel values were kept: all of them, or features made of them, in memory; in a temporary
        file; or nowhere. With Dask collections, on the workers.
    objective_ : float, or one per class
        With "newton".
    history_ : list of dict
        One per Newton step: objective, gap, auc, step, products, passes, seconds and so on; or one
        per epoch.
    n_iter_ : int
    converged_ : bool
        With "newton".

    Notes
    -----
    Kernel values are held in float32 (n x n_landmarks x 4 bytes) unless the problem is small and the
    data float64. ``score`` is accuracy, as in all of scikit-learn; to search or validate by ranking
    pass ``scoring="roc_auc"``.

    Parameters left at "auto" are tuned on up to 4000 rows, or a tenth of more than 40,000, each third
    of which is held out in turn; C, gamma and the landmarks once more on up to 10,000 rows if there are
    many of each class. :mod:`aucmax.tuning` describes what is tried, in which sequence, and when it is
    used. With fewer than 100 rows, or 10 of a class, nothing is tried: C is 10, gamma the distance
    rule, with landmarks of each class.

    With a fixed ``random_state`` a fit is reproducible. Rows in memory may come in any order: the model
    is the same to the last bit. The number of threads, and another processor, change rounding only: the
    same settings and landmarks, and scores that agree to about six digits. Rows in files, mappings or
    Dask collections give the same settings and landmarks, and the same minimum to within ``tol``. Two
    things make a difference: less free memory than trials need, and a ``time_budget`` that ends them.

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> from aucmax import KernelAUCClassifier
    >>> from aucmax.metrics import roc_auc
    >>> X, y = make_circles(400, noise=0.1, factor=0.6, random_state=0)
    >>> model = KernelAUCClassifier(random_state=0).fit(X, y)
    >>> roc_auc(y, model.decision_function(X)) > 0.99
    True
    """

    def __init__(
        self,
        C: float | str = "auto",
        *,
        preset: str | None = None,
        effort: float = 1.0,
        kernel: str = "auto",
        gamma: str | float = "auto",
        degree: int = 3,
        coef0: float = 1.0,
        n_landmarks: int | str = "auto",
        landmarks: Any = "auto",
        metric: str | None = "auto",
        feature_map: str = "nystroem",
        solver: str = "newton",
        standardize: bool | str = "auto",
        tol: float = 1e-4,
        max_iter: int | str = "auto",
        time_budget: float | None = None,
        max_memory: int | str | None = None,
        checkpoint: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.preset = preset
        self.effort = effort
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.metric = metric
        self.feature_map = feature_map
        self.solver = solver
        self.standardize = standardize
        self.tol = tol
        self.max_iter = max_iter
        self.time_budget = time_budget
        self.max_memory = max_memory
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelAUCClassifier:
        """Fit to rows ``X`` (n, d) and their classes ``y``.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n, d)
            Or more than memory holds: a ``numpy.memmap``, the path of a file or of a folder of Parquet
            files, an iterable of blocks (X, y) or (X, y, weight), or a Dask array or data frame (see
            :mod:`aucmax.distributed`).
        y : array of shape (n,)
            Any two labels, or more: then each class is ranked against the rest. The name of a column
            if X is a path; None if X is blocks.
        sample_weight : array of shape (n,), optional
            A pair weighs the product of its rows' weights. A row of weight 0 is ignored, in the
            standardisation, landmarks and bandwidth as well.
        """
        with open_fit(self, X, y, sample_weight, takes=("files", "dask")) as (problem, context):
            resolved = resolve(problem, ask(self), context)
            fits = fit_machines(problem, [each.recipe for each in resolved.machines], context)
            self._keep(fits[0].machine, **learnt(fits, resolved, problem, context.name))
        return self

    def plan(self, X: Any) -> Plan:
        """Return what a fit to these rows would keep where, and how long it would take.

        A map with landmarks at random stands for the one to come, with two kernels if the fit will try
        a second one.
        """
        return plan_kernel(X, ask(self), self.max_memory)

    @property
    def feature_importances_(self) -> npt.NDArray[Any]:
        """Each column's share of the mean squared gradient of the score, at the landmarks.

        Columns are measured in standard deviations. ``aucmax.inspection.importance`` takes other rows,
        and gives errors.
        """
        return importances(self)

    @property
    def machine_(self) -> KernelMachine | Blend:
        own = KernelMachine(self.scaler_, self.feature_map_, self.dual_coef_, self.intercept_)
        parts = getattr(self, "parts_", [])  # models of earlier versions have none
        if not parts:
            return own
        return Blend([own, *(part.machine_ for part in parts)], self.weights_, self.intercept_)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a model; version 0.1 named the weights over landmarks ``coef_``."""
        super().__setstate__(
            {("dual_coef_" if name == "coef_" else name): value for name, value in state.items()}
        )


def ask(estimator: KernelAUCClassifier, needed: tuple[str, ...] = _NEEDED) -> Asked:
    """Return what a classifier's parameters ask for; refuse those that contradict each other.

    ``needed`` are the settings which, if left at "auto", are a reason to tune.
    """
    _check_together(estimator)
    names = ("C", "gamma", "n_landmarks", "landmarks", "standardize", "kernel")
    values: Any = {name: getattr(estimator, name) for name in names}
    if estimator.feature_map == "nystroem" and not isinstance(estimator.landmarks, str):
        values["n_landmarks"] = len(estimator.landmarks)
    recipe = Recipe(
        Settings(**{name: None if is_auto(value) else value for name, value in values.items()}),
        estimator.feature_map,
        estimator.degree,
        estimator.coef0,
        is_auto(estimator.n_landmarks),
        estimator.solver,
        estimator.tol,
        estimator.max_iter,
    )
    kernel, gamma = recipe.settings.kernel or "rbf", recipe.settings.gamma
    rule = "distance" if gamma is None else gamma
    tunable = estimator.preset is None and recipe.solver == "newton"
    return Asked(
        recipe,
        TrialKernel(kernel, rule, gamma is not None, recipe.degree, recipe.coef0),
        tunable and recipe.feature_map == "nystroem" and kernel in RADIAL,
        needed,
        estimator.metric,
        estimator.preset,
        estimator.effort,
        estimator.time_budget,
    )


def _check_together(estimator: KernelAUCClassifier) -> None:
    """Refuse parameters that contradict each other."""
    if estimator.feature_map == "fourier" and estimator.kernel not in ("auto", *FOURIER_KERNELS):
        raise ValueError(
            f'feature_map="fourier" supports the kernels {FOURIER_KERNELS}; got kernel='
            f'{estimator.kernel!r}. Use feature_map="nystroem" for it.'
        )
    metric = estimator.metric
    if metric not in ("learned", "full"):
        return
    for name, wanted in (("feature_map", ("nystroem",)), ("kernel", RADIAL)):
        if getattr(estimator, name) not in ("auto", *wanted):
            raise ValueError(
                f"metric={metric!r} is learnt for {name}={' or '.join(map(repr, wanted))}; got "
                f"{name}={getattr(estimator, name)!r}. Use metric=None."
            )
    if not isinstance(estimator.landmarks, str):
        raise ValueError(
            f"metric={metric!r} moves the landmarks, so landmarks cannot be an array: use "
            'landmarks="auto", or metric=None.'
        )


def learnt(fits: Sequence[Fitted], resolved: Resolved, problem: Problem, name: str) -> dict[str, Any]:
    """Return the learnt attributes of one machine, or of a blend: of its first one and its parts."""
    machines = resolved.machines[: len(fits)]
    weights = np.array([each.weight for each in machines])
    intercept, joint = blended(fits, weights, problem, name)
    about = {"classes_": problem.classes, "trials_": resolved.trials, **_described(machines[0])}
    about |= {**fits[0].about, **joint, "intercept_": intercept}
    others = zip(machines[1:], fits[1:], strict=True)
    return about | {"weights_": weights, "parts_": [_part(*each, problem) for each in others]}


def _described(machine: Machine) -> dict[str, Any]:
    """Return the learnt attributes that describe the settings of a machine."""
    settings = dict(vars(machine.recipe.settings))
    metric = settings.pop("metric")
    return {"settings_": settings, "metric_": metric}


def _part(machine: Machine, fit: Fitted, problem: Problem) -> KernelAUCClassifier:
    """Return a part of a blend as a fitted classifier with fixed settings."""
    about = _described(machine)
    part = KernelAUCClassifier(**about["settings_"], metric="learned" if machine.rounds else None)
    part.n_features_in_ = problem.rows.shape[1]
    if problem.names is not None:
        part.feature_names_in_ = problem.names
    held = {"held_out_scores_", "C_", "gamma_", "gammas_"}  # of a search
    own = {name: value for name, value in fit.about.items() if name not in held}
    part._keep(fit.machine, classes_=problem.classes, trials_=[], parts_=[], **about, **own)
    return part


def importances(model: Any) -> npt.NDArray[Any]:
    """Return ``feature_importances_`` of a model with landmarks."""
    if not isinstance(getattr(model, "feature_map_", None), NystroemFeatures):
        raise AttributeError(
            f"{type(model).__name__} has feature_importances_ once it is fitted, with landmarks; "
            'with feature_map="fourier" use aucmax.inspection.importance.mean_squared_gradient.'
        )
    return model.machine_.importances()


def plan_kernel(
    X: Any,
    asked: Asked,
    max_memory: int | str | None,
    n_problems: int = 1,
    passes: int = EXPECTED_PASSES,
) -> Plan:
    """Plan a fit to rows without fitting it."""
    rows, memory, recipe = as_rows(X), Budget.of(max_memory), asked.untried()
    settings = recipe.settings
    most = most_with_second_kernel(rows, asked, memory)
    auto_kernel = asked.settings.kernel is None and asked.metric != "full"
    if auto_kernel and asked.needs_trials(rows) and recipe.count(rows.shape[0]) <= most:
        settings = replace(settings, kernel=BOTH)
    if isinstance(settings.landmarks, str):
        settings = replace(settings, landmarks="uniform")
    recipe = replace(recipe, settings=settings)
    rows = narrowed(rows, recipe, memory)
    plan = plan_unfitted(rows, recipe, memory, n_problems, passes)
    tuning, machines = seconds_of_tuning(rows, asked), most_machines(rows, asked)
    return replace(plan, tuning=tuning, machines=machines)
