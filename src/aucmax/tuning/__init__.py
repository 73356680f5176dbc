"""Tune the parameters left at "auto": scaling, landmarks, bandwidth, C and a metric.

Trials run on a sample of the rows, part of which is held out: a third where there are many rows, also
of the smaller class, otherwise each third in turn. One thing is chosen after another:

1. C and gamma, by climbing: gamma in factors of two around the distance rule, C in factors of four.
2. The scaling: columns standardised; or mapped to normal scores by rank, which helps with long tails;
   or left in their own units.
3. The landmarks: of each class, in equal shares or by the roots of their sizes; of all rows; at random.
4. The metric. Columns (or directions) along which the learnt score is steep are stretched, the others
   shrunk. Landmarks, C and gamma follow. This is a round of the metric; there are up to three.
5. The number of landmarks: twice as many, as long as that lowers ``1 - AUC`` by a few per cent. If the
   metric helped, a last round is learnt from the better machine.
6. A second kernel, the laplacian, over the same landmarks, if twice the work of a fit is within the
   effort. It follows steps in single columns, so its errors differ from those of the first.
7. If there are many more rows than in the sample, also of the smallest class: C, gamma and the number
   of landmarks again with more of them, unless landmarks are very many already. More rows may show what
   a few cannot, such as a kernel twice as narrow with twice the landmarks.

The first candidate stays unless a later one ranks the held-out rows better by more than the standard
error of the difference (paired, by DeLong). The second kernel is the exception: it is used unless it
ranks them worse by as much; see ``Tuner.try_second_kernel``. So the machine does not end worse than it
began, but for chance. A metric is learnt from training rows and compared on held-out ones; at the end
it is learnt from the whole sample, with as many rounds as were found to help. In the last step it is
the same for all candidates, so it does not matter there that some of its rows are held out.

An effort below 1 means fewer rows and landmarks in the trials; below 0.5 steps 3, 6 and 7 are left out,
with one round of the metric. A deadline ends the trials with the best so far.
"""
