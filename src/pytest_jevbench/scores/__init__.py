"""Scorers: pure functions from judged tests to numbers. None of them asks a model or reads a file."""
