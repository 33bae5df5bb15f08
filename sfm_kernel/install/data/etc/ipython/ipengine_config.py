# Every engine of this environment joins its cluster's world. `extra_extensions`, since a user's
# profile that sets `extensions` would replace ours.
c = get_config()
c.InteractiveShellApp.extra_extensions = ["sfm_kernel.jupyter.engine"]
