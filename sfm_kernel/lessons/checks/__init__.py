"""The exercises of the notebooks, a file for each notebook; ``common`` has what several use."""
