"""What the paper reports: its Tables 1 to 4 and the grid of its Figure 1, as printed.

Source: M. Khalid, I. Ray and H. Chitsaz, "Scalable Nonlinear AUC Maximization Methods" (2018),
section 5. AUC is in percent, times are in seconds, None is a dash.
"""

from __future__ import annotations

from typing import TypeVar

_Value = TypeVar("_Value")
Results = dict[str, dict[str, float | None]]

#: All data sets, in the order of Tables 1 to 3.
DATASETS = (
    "spambase",
    "usps",
    "magic04",
    "protein",
    "ijcnn1",
    "connect-4",
    "acoustic",
    "skin",
    "cod-rna",
    "covtype",
)

#: Those of Table 4 and of Figure 1, in the order of its panels.
LARGE_DATASETS = ("ijcnn1", "connect-4", "acoustic", "skin", "cod-rna", "covtype")

#: The methods of Tables 2 and 3, of Table 4 and of Figure 1.
BATCH_METHODS = ("RBF-RankSVM", "RBF-RankSVM (subsample)", "Linear RankSVM", "RFAUC", "NBAUC")
STOCHASTIC_METHODS = ("NOAM", "NSOLAM", "NSAUC", "NBAUC")
EPOCH_METHODS = ("NSAUC", "NSVMSGD2", "NSOLAM")

#: The epoch counts of Figure 1.
EPOCHS = (1, 2, 3, 4, 5, 10, 20, 50, 100, 200, 300, 400)

#: Landmarks, and random Fourier features, of all its experiments.
LANDMARKS = 1600


def _by_column(
    columns: tuple[str, ...], values: dict[str, tuple[_Value, ...]]
) -> dict[str, dict[str, _Value]]:
    return {data: dict(zip(columns, row, strict=True)) for data, row in values.items()}


#: Rows, features, and negatives per positive.
TABLE1: dict[str, dict[str, float]] = _by_column(
    ("n_train", "n_test", "n_features", "ratio"),
    {
        "spambase": (3680, 921, 57, 1.53),
        "usps": (7291, 2007, 256, 1.40),
        "magic04": (15216, 3804, 10, 1.84),
        "protein": (17766, 6621, 357, 2.11),
        "ijcnn1": (49990, 91701, 22, 9.44),
        "connect-4": (54045, 13512, 126, 3.06),
        "acoustic": (78823, 19705, 50, 3.31),
        "skin": (196045, 49012, 3, 3.83),
        "cod-rna": (331152, 157413, 8, 2.0),
        "covtype": (464809, 116203, 54, 10.65),
    },
)

#: Test AUC of the batch methods.
TABLE2: Results = _by_column(
    BATCH_METHODS,
    {
        "spambase": (98.00, 96.02, 97.47, 97.75, 98.04),
        "usps": (99.08, 98.54, 90.27, 97.42, 99.24),
        "magic04": (92.18, 91.34, 84.47, 92.83, 93.06),
        "protein": (80.97, 77.60, 83.30, 58.43, 84.33),
        "ijcnn1": (99.68, 99.35, 91.56, 98.86, 99.57),
        "connect-4": (None, 91.32, 88.20, 91.10, 94.09),
        "acoustic": (93.60, 93.02, 87.38, 91.82, 94.14),
        "skin": (99.92, 99.92, 94.81, 100.0, 99.98),
        "cod-rna": (99.07, 99.07, 98.85, 99.12, 99.12),
        "covtype": (93.94, 94.05, 87.75, 95.99, 96.03),
    },
)

#: Their training times, with the embedding.
TABLE3: Results = _by_column(
    BATCH_METHODS,
    {
        "spambase": (3.08, 0.10, 0.13, 3.59, 7.71),
        "usps": (492.30, 0.83, 1.42, 6.77, 27.68),
        "magic04": (518.04, 3.71, 0.08, 21.51, 25.46),
        "protein": (2614.7, 4.81, 4.47, 14.20, 73.81),
        "ijcnn1": (15434.0, 282.0, 0.57, 80.17, 88.87),
        "connect-4": (None, 12701.0, 3.42, 62.60, 164.48),
        "acoustic": (134030.0, 5610.0, 1.88, 92.74, 151.78),
        "skin": (2037.30, 78.20, 0.20, 73.18, 23.71),
        "cod-rna": (5715.0, 255.4, 0.44, 83.01, 113.66),
        "covtype": (133270.0, 11670.0, 2.54, 273.67, 220.90),
    },
)

#: Test AUC of the stochastic methods, and of NBAUC on the same rows.
TABLE4_AUC: Results = _by_column(
    STOCHASTIC_METHODS,
    {
        "ijcnn1": (98.16, 98.86, 99.69, 99.57),
        "connect-4": (85.96, 90.60, 94.04, 94.08),
        "acoustic": (89.90, 91.00, 94.04, 94.14),
        "skin": (99.98, 99.01, 99.98, 99.98),
        "cod-rna": (98.29, 99.10, 99.19, 99.18),
        "covtype": (91.29, 92.25, 96.00, 96.60),
    },
)

#: Their training times, without the embedding.
TABLE4_SECONDS: Results = _by_column(
    STOCHASTIC_METHODS,
    {
        "ijcnn1": (6.24, 6.88, 4.80, 40.70),
        "connect-4": (6.97, 7.39, 10.74, 36.96),
        "acoustic": (10.80, 10.82, 23.80, 59.34),
        "skin": (6.26, 5.66, 6.60, 10.32),
        "cod-rna": (42.09, 47.06, 34.23, 148.46),
        "covtype": (61.75, 63.59, 49.17, 1110.44),
    },
)
