"""Recipes of a fit: functions over small frozen values, with no estimator among them.

``open_fit`` makes a :class:`Problem` and a :class:`Context` of what a user passes; ``kernel_fit``,
``linear_fit``, ``stream_fit``, ``rank_svm_fit`` and ``kernel_search`` make machines of them.
"""
