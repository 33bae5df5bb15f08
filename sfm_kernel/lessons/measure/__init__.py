"""What programs that measure stand on, in notebooks and on the command line.

engines    processes that serve a program, and how home drives them
crew       processes that are no engines, such as ranks of an MPI
rows       what is done with rows: a table, a DataFrame, a JSON file
machine    facts about the machine
arguments  values on a command line
command    runs a program from the command line
"""
