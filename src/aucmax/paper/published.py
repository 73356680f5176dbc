"""What the paper prints: Tables 1 to 4, and the data sets, methods and epoch counts of its experiments.

Source: Khalid, Ray and Chitsaz, "Scalable Nonlinear AUC Maximization Methods" (2018), section 5. AUC is
in percent, times are in seconds, and None is a dash.
"""

from __future__ import annotations

from typing import NamedTuple

Results = dict[str, dict[str, float | None]]

#: The number of landmarks, or of random Fourier features, in all of the paper's experiments.
LANDMARKS = 1600

#: All data sets in the order of Tables 1 to 3; the large ones in the order of Table 4 and Figure 1.
SMALL_DATASETS = ("spambase", "usps", "magic04", "protein")
LARGE_DATASETS = ("ijcnn1", "connect-4", "acoustic", "skin", "cod-rna", "covtype")
DATASETS = SMALL_DATASETS + LARGE_DATASETS

BATCH_METHODS = ("RBF-RankSVM", "RBF-RankSVM (subsample)", "Linear RankSVM", "RFAUC", "NBAUC")
STOCHASTIC_METHODS = ("NOAM", "NSOLAM", "NSAUC", "NBAUC")
EPOCH_METHODS = ("NSAUC", "NSVMSGD2", "NSOLAM")

#: The epoch counts of Figure 1.
EPOCHS = (1, 2, 3, 4, 5, 10, 20, 50, 100, 200, 300, 400)


class Scope(NamedTuple):
    """Where the paper shows an experiment, and its data sets and methods."""

    title: str
    datasets: tuple[str, ...]
    methods: tuple[str, ...]


#: The scope of each experiment; Table 1 has no method.
SCOPES = {
    "data": Scope("Table 1", DATASETS, ("",)),
    "batch": Scope("Tables 2 and 3", DATASETS, BATCH_METHODS),
    "stochastic": Scope("Table 4", LARGE_DATASETS, STOCHASTIC_METHODS),
    "epochs": Scope("Figure 1", LARGE_DATASETS, EPOCH_METHODS),
}


def _parse(columns: tuple[str, ...], text: str) -> list[Results]:
    """Read tables that are printed side by side."""
    tables: list[Results] = [{}, {}]
    for line in text.strip().splitlines():
        data, values = line.split(maxsplit=1)
        for table, part in zip(tables, values.split("|"), strict=False):
            numbers = [None if word == "-" else float(word) for word in part.split()]
            table[data] = dict(zip(columns, numbers, strict=True))
    return tables


# fmt: off
#: Rows, features, and negatives per positive.
TABLE1, _ = _parse(("n_train", "n_test", "n_features", "ratio"), """
    spambase     3680     921   57   1.53
    usps         7291    2007  256   1.40
    magic04     15216    3804   10   1.84
    protein     17766    6621  357   2.11
    ijcnn1      49990   91701   22   9.44
    connect-4   54045   13512  126   3.06
    acoustic    78823   19705   50   3.31
    skin       196045   49012    3   3.83
    cod-rna    331152  157413    8   2.0
    covtype    464809  116203   54  10.65
""")

#: Test AUC of the batch methods | their training times with the embedding.
TABLE2, TABLE3 = _parse(BATCH_METHODS, """
    spambase   98.00  96.02  97.47  97.75  98.04  |     3.08    0.10  0.13    3.59    7.71
    usps       99.08  98.54  90.27  97.42  99.24  |   492.30    0.83  1.42    6.77   27.68
    magic04    92.18  91.34  84.47  92.83  93.06  |   518.04    3.71  0.08   21.51   25.46
    protein    80.97  77.60  83.30  58.43  84.33  |   2614.7    4.81  4.47   14.20   73.81
    ijcnn1     99.68  99.35  91.56  98.86  99.57  |    15434     282  0.57   80.17   88.87
    connect-4      -  91.32  88.20  91.10  94.09  |        -   12701  3.42   62.60  164.48
    acoustic   93.60  93.02  87.38  91.82  94.14  |   134030    5610  1.88   92.74  151.78
    skin       99.92  99.92  94.81  100    99.98  |  2037.30   78.20  0.20   73.18   23.71
    cod-rna    99.07  99.07  98.85  99.12  99.12  |     5715   255.4  0.44   83.01  113.66
    covtype    93.94  94.05  87.75  95.99  96.03  |   133270   11670  2.54  273.67  220.90
""")

#: Test AUC of the stochastic methods, and of NBAUC on the same rows | times without the embedding.
TABLE4_AUC, TABLE4_SECONDS = _parse(STOCHASTIC_METHODS, """
    ijcnn1     98.16  98.86  99.69  99.57  |    6.24   6.88   4.80    40.70
    connect-4  85.96  90.60  94.04  94.08  |    6.97   7.39  10.74    36.96
    acoustic   89.90  91.00  94.04  94.14  |   10.80  10.82  23.80    59.34
    skin       99.98  99.01  99.98  99.98  |    6.26   5.66   6.60    10.32
    cod-rna    98.29  99.10  99.19  99.18  |   42.09  47.06  34.23   148.46
    covtype    91.29  92.25  96.00  96.60  |   61.75  63.59  49.17  1110.44
""")
