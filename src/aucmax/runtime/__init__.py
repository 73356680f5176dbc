"""Threads, memory limits, deadlines, output files, progress, parameter checks and compiled loops."""
