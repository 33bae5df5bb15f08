# In every notebook of this environment %sfm and %%sfm load the package when they are first used.
c = get_config()
c.MagicsManager.lazy_magics.update({"sfm": "sfm_kernel"})  # the user's own stay
# Where `send` is not known yet, a sentence says what to do first.
c.InteractiveShellApp.extra_extensions = ["sfm_kernel.jupyter.hint"]
