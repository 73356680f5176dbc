"""What all tests share, those in docstrings and pages included."""

import os

# Each pytest worker has one core to itself, where more BLAS threads only wait for each other, at up to
# five times the CPU time. This is set before anything imports NumPy; `-n 0` keeps all threads.
if "PYTEST_XDIST_WORKER" in os.environ:
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
