"""Seeing what processes do, from outside and without their help."""
