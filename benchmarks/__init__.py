"""Measurements that people run: ``python -m benchmarks --help``."""
