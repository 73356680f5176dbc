"""The exact kernel machine on many rows: what the start, the preconditioner and fewer rows each bring.

On 12,000 rows the solver runs from zero with plain conjugate gradients, then with one thing more each
time, and along a path of C without landmarks. On up to 80,000 rows, as many as the paper has,
``KernelRankSVM`` runs as users would call it; ``--small`` leaves these out. C is 2^-5 in the paper's
unit and gamma 2^-4, both in its grid; ``tol`` is 1e-3. Every run of one size has the same objective to
that tolerance. The time to compute the kernel matrix is apart from the rest on 12,000 rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

from aucmax import KernelRankSVM
from aucmax.features.kernels import KernelSpec
from aucmax.fitting.rank_svm_fit import START, landmark_features, landmark_rows
from aucmax.operators.kernel_tiles import KernelTiles
from aucmax.pairs import PairLoss
from aucmax.paper.data import load_dataset
from aucmax.runtime.machine import Company, peak_gib
from aucmax.runtime.memory import Budget
from aucmax.solvers.kernel_newton import minimize_kernel
from aucmax.solvers.newton import minimize
from aucmax.solvers.options import Stopping
from benchmarks.harness import stored_rows, timed

COLUMNS = ("data", "rows", "variant", "products", "steps", "objective", "seconds", "kernel_seconds")
DATA = ("ijcnn1", "connect-4", "skin", "cod-rna", "covtype")
FEW, MANY = 12_000, 80_000
GAMMA, PAPER_C, STOPPING = 2.0**-4, 2.0**-5, Stopping(tol=1e-3)

#: Name, and whether it starts from landmarks, is preconditioned by them, and leaves rows out.
VARIANTS = {
    "from zero": (False, False, False),
    "start": (True, False, False),
    "start, preconditioner": (True, True, False),
    "start, preconditioner, fewer rows": (True, True, True),
    "path of C": (False, False, True),
}
PATH, WHOLE = "path of C", "KernelRankSVM"


def arguments(parser: Any) -> None:
    parser.add_argument("--small", action="store_true", help="only the runs on 12,000 rows")


def run(options: Any) -> Iterator[dict[str, Any]]:
    names = ("data", "rows_asked", "variant")
    done = {
        tuple(row.get(name) for name in names) for row in stored_rows("rank_svm_large", options.out)
    }
    for data in options.data or DATA:
        for variant in VARIANTS:
            if (data, FEW, variant) not in done:
                yield one(data, FEW, variant)
    for data in () if options.small else options.data or DATA:
        if (data, MANY, WHOLE) not in done:
            yield whole(data)


def _rows(data: str, most: int) -> tuple[Any, Any, float]:
    split = load_dataset(data, seed=0).head(most, seed=0)
    X = StandardScaler().fit_transform(split.X_train).astype(np.float32)
    up = split.y_train == 1
    return X, up, PAPER_C * up.sum() * (~up).sum() / up.size


def whole(data: str) -> dict[str, Any]:
    """Fit the estimator to as many rows as the paper has."""
    X, up, C = _rows(data, MANY)
    company = Company()
    model = KernelRankSVM(C, gamma=GAMMA, tol=STOPPING.tol, standardize=False, random_state=0)
    seconds, _ = timed(lambda: model.fit(X, up))
    last = model.history_[-1]
    return {
        "data": data,
        "rows_asked": MANY,
        "rows": len(X),
        "variant": WHOLE,
        "C": C,
        "objective": model.objective_,
        "converged": bool(model.converged_),
        "products": last["products"],
        "steps": model.n_iter_,
        "seconds": seconds,
        "kernel_seconds": None,
        "company": company.share(),
        "peak_gib": peak_gib(),
    }


def one(data: str, most: int, variant: str) -> dict[str, Any]:
    X, up, C = _rows(data, most)
    spec = KernelSpec("rbf", GAMMA)
    loss, (starts, preconditions, restricts) = PairLoss(up), VARIANTS[variant]
    company, begun, start, landmarks = Company(), 0.0, None, None
    if starts:

        def prepare() -> Any:
            features = landmark_features(X, landmark_rows(loss, 0), spec)
            return features, minimize(features.operator, [loss], np.array([C]), stopping=START)

        begun, (landmarks, solved) = timed(prepare)
        start = landmarks.as_rows(solved.coef[:, 0])
    making, kernel = timed(lambda: KernelTiles(X, spec, Budget.of(None).total))
    more = {"landmarks": landmarks if preconditions else None, "restrict": restricts}

    def solve() -> tuple[int, Any]:
        products, begin = 0, start
        for k in range(4 if variant == PATH else 0, -1, -1):
            stopping = STOPPING if k == 0 else Stopping(tol=3e-2)
            found = minimize_kernel(kernel, loss, C / 8.0**k, start=begin, stopping=stopping, **more)
            products, begin = products + found.products, found.coef
        return products, found

    solving, (products, solution) = timed(solve)
    return {
        "data": data,
        "rows_asked": most,
        "rows": len(X),
        "variant": variant,
        "C": C,
        "objective": solution.objective,
        "converged": bool(solution.converged),
        "products": products,
        "steps": solution.iteration,
        "seconds": begun + solving,
        "kernel_seconds": making,
        "held": kernel.share_held,
        "company": company.share(),
        "peak_gib": peak_gib(),
    }
