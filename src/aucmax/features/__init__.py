"""Feature maps: kernels made finite, so that a linear solver learns a nonlinear ranking."""
