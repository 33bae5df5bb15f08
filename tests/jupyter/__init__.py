"""Tests with real kernels and ipyparallel clusters."""
