"""Makes this server's kernels listen on Unix sockets, and encrypt what they send.

A notebook shows what its engines print. Over plain TCP, a kernel sends its cells and outputs to
anybody on the machine who connects to its port.
"""

from __future__ import annotations

import os
from typing import Any

from sfm_kernel.directory.unix import can_listen

_PYTHON = "ipykernel_launcher"
_LOCAL = "local-provisioner"


def protect(manager: Any) -> None:
    """Have kernels that start from now on do both, unless the user's configuration sets otherwise.

    Kernels that cannot speak CURVE are not encrypted. Only Python's kernels on this machine get
    Unix sockets: others may not know them, or run in a container. They also use TCP if the folder
    of the connection files has too long a path, or is open to other users.
    """
    if _is_unset(manager, type(manager), "transport_encryption"):
        manager.transport_encryption = "auto"
    remote = type(manager).__module__.startswith("jupyter_server.gateway")
    if hasattr(manager, "kernel_manager_factory") and not remote:
        manager.kernel_manager_factory = _with_sockets(manager.kernel_manager_factory)


def _with_sockets(make: Any) -> Any:
    """A function like ``make`` that gives Unix sockets to kernels that can use them."""

    def make_kernel(*arguments: Any, owns_kernel: bool = True, **options: Any) -> Any:
        if not owns_kernel:  # another program has started it
            return make(*arguments, owns_kernel=False, **options)
        kernel = make(*arguments, **options)
        free = all(_is_unset(kernel, type(kernel), name) for name in ("transport", "ip"))
        path = f"{os.path.splitext(kernel.connection_file)[0]}-ipc-9"
        if free and _is_python(kernel) and can_listen(path):
            kernel.transport = "ipc"
        return kernel

    return make_kernel


def _is_unset(configured: Any, kind: type, name: str) -> bool:
    """Whether there is such a setting, and the user's configuration does not set it."""
    is_set = any(name in configured.config.get(base.__name__, {}) for base in kind.__mro__)
    return bool(configured.has_trait(name)) and not is_set


def _is_python(kernel: Any) -> bool:
    """Whether it is a Python kernel that will run on this machine."""
    from jupyter_client.kernelspec import NoSuchKernel
    from jupyter_client.provisioning.factory import KernelProvisionerFactory

    try:
        spec = kernel.kernel_spec
    except NoSuchKernel:  # the start of the kernel reports it
        return False
    usual = KernelProvisionerFactory.instance(parent=kernel.parent).default_provisioner_name
    provisioner = spec.metadata.get("kernel_provisioner", {}).get("provisioner_name", usual)
    started = [os.path.basename(word) for word in spec.argv]
    return provisioner == _LOCAL and started[0].startswith("python") and _PYTHON in started
