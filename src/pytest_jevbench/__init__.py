"""Coherence tests for typed decision models, as pytest tests.

This module is imported by every pytest run on a machine that has the plugin: it must stay empty of heavy imports.
"""

__version__ = "0.1.0"
