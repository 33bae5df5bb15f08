"""Tries a student's attempt at an exercise: ``%sfm check``.

check     an exercise's requirements: arguments, right results, allowed messages
cell      finds the student's cell, and selects the statements that a trial runs
rank      one process of a trial: runs the cell, calls the function
plain     what such a process may return, as bytes that bring no code with them
trial     one call of the function by several processes
c         the same for a function in C
words     describes a trial's faults to the student
examiner  a process that tries an attempt with several sizes and seeds, apart from the notebook

An exercise asks for a function of its name. ``%sfm check ring`` takes the last cell that defines
``ring``; 1, 2, 3, 5 and 8 fresh processes call that function.
"""
