"""Tries a student's attempt at an exercise: ``%sfm check``.

check     what an exercise asks for: arguments, right results, allowed messages
cell      the student's cell: found, read, and what of it is run
rank      one process of a trial: runs the cell, calls the function
trial     one call of the function by several processes
c         the same for a function in C
words     what is said of a trial
examiner  a process that tries an attempt with several sizes and seeds, apart from the notebook

An exercise asks for a function of its name. ``%sfm check ring`` takes the last cell that defines
``ring``, and has it called by 1, 2, 3, 5 and 8 fresh processes.
"""
