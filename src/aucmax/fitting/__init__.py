"""Functions that fit models. They take and return small frozen values, and use no estimator.

``open_fit`` makes a :class:`Problem` and a :class:`Context` from what a user passes. ``kernel_fit``,
``linear_fit``, ``stream_fit``, ``rank_svm_fit`` and ``kernel_search`` make a fitted machine from these.
"""
