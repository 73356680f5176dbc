"""Checks of what aucmax promises, for a minute or overnight: ``python -m reliability NAME``."""
