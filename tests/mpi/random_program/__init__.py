"""A random correct program: ``python -m sfm_kernel.mpi -m tests.mpi.random_program SEED STEPS``.

Collective calls of all sizes and kinds of data, messages in all modes, windows, and communicators
that are made and freed meanwhile. All ranks throw the same dice, so each knows what all others
give, and computes alone what every call must return.
"""
