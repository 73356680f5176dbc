"""Tune the parameters left at "auto": scaling, metric, kernels, bandwidth, C and landmarks.

Trials run on a sample of the rows, each third of which is held out in turn. One thing is chosen after
another:

1. C and gamma, by climbing: gamma in factors of two around the distance rule, C in factors of four.
2. The scaling: columns standardised; or mapped to normal scores by rank, which helps with long tails;
   or left in their own units.
3. The metric. Columns (or directions) along which the learnt score is steep are stretched, the others
   shrunk. C and gamma follow. This is a round of the metric; there are up to three.
4. As many landmarks as given; otherwise a thousand, if there are no more rows for step 6.
5. A second kernel, the laplacian, over the same landmarks, if twice the work of a fit is within the
   effort. It follows steps in single columns, so its errors differ from those of the first.
6. If there are many more rows than in the sample: C, gamma, the kind of landmarks and their number, on
   more of them. More rows may show what a few cannot, such as a narrower kernel with more landmarks.
7. The paper's settings, which stay if they rank held-out rows best.

What ranks held-out rows best is kept. Where a class has fewer than 100 rows, the first candidate
stays unless a later one is better by more than the standard error of the difference (paired, by
DeLong); the second kernel is then used unless it is worse by as much, which averages two machines that
cannot be told apart. A metric is learnt from training rows and compared on held-out ones; at the end it
is learnt from the whole sample, with as many rounds as were found to help. In step 6 it is the same for
all candidates, so it does not matter there that some of its rows are held out.

From an effort of 2 on, machines that differ from the one found are tuned by steps 1 to 5, and their
scores are blended with weights: see ``blend``.

An effort below 1 means fewer rows and landmarks in the trials; below 0.5 steps 5 to 7 are left out,
with one round of the metric. A deadline ends the trials with the best so far.
"""
