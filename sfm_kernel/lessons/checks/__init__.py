"""The exercises of the notebooks, a file for each notebook."""
