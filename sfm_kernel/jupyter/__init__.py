"""Jupyter and ipyparallel: the magics of a notebook, and the extensions of engines and controllers.

This module imports nothing before it is needed: a notebook, an engine and a controller each load
their own module.

    magics       %sfm and %%sfm in the notebook
    cell         runs a cell on engines, with ipyparallel's options
    c_cells      %%sfm c: programs and functions in C
    programs     runs programs in new processes and shows their output; calls functions on engines
    kernel       the commands that a notebook's kernel finds, and what others can read of it
    keyboard     asks the user for input when such a program reads its stdin
    commands     the text of %sfm help
    launching    starts a cluster's controller and engines
    starting     the words of %sfm start, and its progress
    progress     an output that shows how far something is
    failures     shows the errors of a cell, the cause first
    interrupted  what a cell says after Stop
    tracebacks   shows errors with the user's lines only
    death        why an engine has ended
    attach       %sfm debug A --attach: JupyterLab's debugger on an engine
    debug        %sfm debug: the debugger after an error on an engine
    postmortem   its part on the engine
    unattended   what an engine does not have: a keyboard
    autopx       keeps %sfm in the notebook in ipyparallel's %autopx mode
    hint         for every notebook: what to do first where `send` is not known
    inspection   the commands that show a world and change nothing
    watch        the live table in a cell
    recording    %sfm record: writes the last run into a file to hand in
    sharing      %sfm share: shows this world to a class
    observed     observes the world while a cell runs: deadlocks, messages that nobody received
    lines        finds the cell that a line of code is in
    home         the notebook in the engines' world
    cluster      starts, ends and finds ipyparallel clusters
    ending       ends engines and clusters
    settings     the administrator's settings: c.SFM, SFM_*
    limits       limits the number of a user's engines, and the memory of each
    idle         ends engines that nobody uses
    supervisor   the parent of this machine's engines
    engine       the IPython extension that gives an engine its queue
    controller   changes to ipyparallel's controller
    cluster_files  the world, key and files of a cluster
    names        checks the names of engines
    server       the Jupyter server's extension, for the panel
    tables       small tables in HTML and text
    live         draws plots while a cell runs
"""

from __future__ import annotations

from typing import Any


def client() -> Any:
    """ipyparallel's client of this notebook's engines: its views, ``client().become_dask()`` …"""
    from IPython import get_ipython

    return get_ipython().magics_manager.registry["SFMMagics"].client
