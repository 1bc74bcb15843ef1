"""Solvers: they advance a point; the driver measures, screens and reduces."""
