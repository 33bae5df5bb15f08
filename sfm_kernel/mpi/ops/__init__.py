"""Operations of reductions.

op           Op, and what every operation knows
predefined   SUM, MAX, MINLOC, …
"""
