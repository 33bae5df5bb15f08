"""Jupyter and ipyparallel: the magics of a notebook, and what engines and controllers load.

Nothing is imported here before it is needed: a notebook, an engine and a controller each load
their own module.

    magics       %sfm and %%sfm in the notebook
    cell         runs a cell on engines, with ipyparallel's options
    c_cells      %%sfm c: programs and functions in C
    programs     processes of their own, whose output comes into the cell
    keyboard     asks the user when such a program reads
    commands     the commands in words: what %sfm help says
    looking      the commands that show a world and change nothing
    watch        the live table in a cell
    recording    %sfm record: what happened, as a file to hand in
    sharing      %sfm share: shows this world to a class
    observed     what is seen meanwhile: deadlocks, messages that nobody received
    lines        which cell a line of code stands in
    home         the notebook in the engines' world
    cluster      ipyparallel clusters are started, ended, found
    ending       how engines and clusters end
    settings     what an administrator sets: c.SFM, SFM_*
    limits       how many engines a user has, and the memory of each
    idle         engines that nobody uses end
    supervisor   the parent of this machine's engines
    engine       the IPython extension that gives an engine its queue
    controller   what ipyparallel's controller does for SFM
    places       the world, key and files of a cluster
    names        which names engines may have
    server       the Jupyter server's extension, for the panel
    tables       small tables in HTML and text
    live         plots that are drawn while a cell runs
"""

from __future__ import annotations

from typing import Any


def load_ipython_extension(shell: Any) -> None:
    """Add ``%sfm`` and ``%%sfm`` to a notebook; harmless in an engine, which has its names."""
    from sfm_kernel.jupyter.magics import load

    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Leave the world, and stop the cluster if this notebook started it."""
    from sfm_kernel.jupyter.magics import unload

    unload(shell)


def client() -> Any:
    """ipyparallel's client of this notebook's engines: its views, ``client().become_dask()`` …"""
    from IPython import get_ipython

    return get_ipython().magics_manager.registry["SFMMagics"].client
