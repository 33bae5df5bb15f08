# Every controller of this environment serves the directory of its cluster's world.
try:
    from sfm_kernel.jupyter import controller
except ImportError:  # sfm-kernel was removed and left this file
    pass
else:
    controller.install()
