"""The basis of programs that measure, in notebooks and on the command line.

engines    processes that serve a program, and the functions by which home drives them
launched   processes that are not engines, such as ranks of an MPI
rows       rows as a table, a DataFrame
results    measures parts, prints and keeps their rows, and goes on where it was stopped
machine    facts about the machine
arguments  values on a command line
command    runs a program from the command line
"""
