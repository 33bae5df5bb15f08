"""How Sphinx builds the documentation: ``make docs`` writes it to build/docs.

Nothing here needs a network. Notebooks are executed on engines of this machine once, and not again
until one of their cells has changed: the cache is build/docs-cache. `make docs ARGS="-D
nb_execution_mode=off"` builds the pages without running them.
"""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "sfm-kernel"
copyright = "the sfm-kernel developers"
version = release = metadata.version("sfm-kernel")

extensions = [
    "sphinx.ext.autodoc", "sphinx.ext.napoleon", "myst_nb", "sphinx_copybutton",
    # in _ext
    "buttons", "commands", "docstrings", "formulas", "header", "kernels", "pages", "recorded",
]  # fmt: skip
exclude_patterns = ["_ext"]
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3

# The theme of JupyterLab's, Notebook's and the Jupyter server's own documentation.
html_theme = "pydata_sphinx_theme"
html_title = "sfm-kernel"
templates_path = ["_templates"]
html_static_path = ["_static"]
html_css_files = ["sfm.css"]
html_theme_options = {
    "logo": {"text": "sfm-kernel"},
    "show_toc_level": 2,
    # The drawing needs the whole width.
    "secondary_sidebar_items": {"**": ["page-toc"], "architecture": []},
    "article_header_end": ["notebook-buttons"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_math_renderer = "mathml"
html_show_sourcelink = False

# What is typed gets a button that copies it, without prompts; what is printed gets none.
copybutton_selector = "div.highlight pre:not(.cell_output pre, .highlight-text pre)"
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True

# The reference.
autodoc_default_options = {"members": True}
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
napoleon_numpy_docstring = False
napoleon_use_ivar = True

# Every name of ours must be found. What others call their things is in inventories, which only a
# network has; what the core and transports are made of is not public.
nitpicky = True
nitpick_ignore_regex = [
    ("py:.*", r"(?!sfm_kernel\b).*"),
    ("py:.*", r"sfm_kernel\.(_native|transport)\..*"),
    ("py:class", r"sfm_kernel\.speedes\..*\.Value"),  # a type variable
    ("c:.*", r"u?int\d+_t|size_t"),
]

# Notebooks. The tenth makes network namespaces, which needs rights that a build does not have.
nb_execution_mode = "cache"
nb_execution_cache_path = str(HERE.parent / "build/docs-cache")
nb_execution_excludepatterns = ["notebooks/10-*"]
nb_execution_timeout = 300  # seconds, for a cell
nb_execution_raise_on_error = True
nb_merge_streams = True
# Cells of C, and lines that begin with %: no lexer knows all of them.
suppress_warnings = ["misc.highlighting_failure"]
