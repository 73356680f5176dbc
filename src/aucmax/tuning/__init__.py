"""Tuning of parameters left at "auto": scaling, landmarks, bandwidth, C and a metric.

Everything is tried on a sample of the rows, some of which are held out: a third of them where there are
many rows, of the smaller class too, else each third in turn. One thing after another is settled:

1. C and gamma, by climbing: gamma in factors of two around the distance rule, C in factors of four.
2. Columns standardised, or brought to normal scores by rank, which helps where they have long tails, or
   left in their own units.
3. Landmarks of each class, in equal shares or by the roots of their sizes, of all rows, or at random.
4. The metric. Columns (or directions) along which the learnt score is steep are stretched, the others
   shrunk. Landmarks, C and gamma follow, and it is done again, for a few rounds.
5. How many landmarks: twice as many, as long as that lowers ``1 - AUC`` by a few per cent. If the
   metric helped, a last round is learnt from the better machine.
6. A second kernel, the laplacian, over the same landmarks, where twice the work of a fit is within
   the effort. It sees steps in single columns, and what it gets wrong is not what the other does.
7. Where there are many more rows than in the sample, of the smallest class too: C, gamma and the number
   of landmarks once more with more of them, unless landmarks are very many already. What a few rows
   cannot tell, as a kernel twice as narrow with twice the landmarks, more rows may.

Whatever came first stays, unless what comes after ranks the held-out rows better by more than the
standard error of the difference (paired, by DeLong); the second kernel alone comes unless it ranks them
worse by as much (see ``Tuner.try_second_kernel``). So the machine does not end worse than it began, but
for chance. A metric is learnt from rows that do not judge it, and at the end, with as many rounds
as were found to help, from the whole sample. In the last step it is the same for all that is tried, so
that it does not matter there that some of its rows are held out.

An effort below 1 means fewer rows and landmarks in the trials, and below 0.5 steps 3, 6 and 7 are left
out, with one round of the metric. A deadline ends the trials: the best so far counts.
"""

from aucmax.tuning.learnt_metric import (
    Damping,
    Round,
    as_rounds,
    learn_metric,
    mean_outer,
    plain_rounds,
    unstretched,
)
from aucmax.tuning.settings import Kernel, Settings
from aucmax.tuning.trial_rows import (
    FOLDED_ROWS,
    MOST_TRIED,
    SAMPLE_ROWS,
    WIDE_ROWS,
    Sample,
    draw_sample,
    first_landmarks,
    rows_within,
    sample_rows,
    too_few,
)
from aucmax.tuning.trials import learn_rounds
from aucmax.tuning.tuner import most_landmarks, tune, tuning_seconds

__all__ = [
    "FOLDED_ROWS",
    "MOST_TRIED",
    "SAMPLE_ROWS",
    "WIDE_ROWS",
    "Damping",
    "Kernel",
    "Round",
    "Sample",
    "Settings",
    "as_rounds",
    "draw_sample",
    "first_landmarks",
    "learn_metric",
    "learn_rounds",
    "mean_outer",
    "most_landmarks",
    "plain_rounds",
    "rows_within",
    "sample_rows",
    "too_few",
    "tune",
    "tuning_seconds",
    "unstretched",
]
