"""Threads, memory, deadlines, files and compiled loops: what a machine offers, and no mathematics."""
