"""A gateway for a cluster whose engines are at several sites.

    python -m sfm_kernel.jupyter.gateway ipcontroller-engine.json --site lyon

Run one gateway at each site, with the connection file of the engines at that site. All other
options are those of ``python -m sfm_kernel.gateway``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from sfm_kernel.directory.gateways import GatewayKey
from sfm_kernel.errors import WorldAccess
from sfm_kernel.gateway.__main__ import main as gateway
from sfm_kernel.jupyter.cluster_files import DIRECTORY, world_key, world_name


def run(connection: Mapping[str, Any], options: list[str]) -> int:
    """Run a gateway of a cluster's world until SIGINT or SIGTERM; returns the exit status.

    Args:
        connection: the content of the cluster's connection file.
        options: options of ``python -m sfm_kernel.gateway``, without the world.
    Raises:
        WorldAccess: the cluster has no session key.
        KeyError: the cluster's controller runs without SFM.
    """
    environment = {
        "SFM_DIRECTORY": connection[DIRECTORY],
        "SFM_GATEWAY_KEY": str(GatewayKey.of_world(world_key(connection))),
    }
    return gateway(["--world", world_name(connection), *options], environment)


def main(arguments: list[str]) -> int:
    """Run the command; returns its exit status."""
    if not arguments or arguments[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    path, *options = arguments
    try:
        with open(path, encoding="utf-8") as file:
            connection = json.load(file)
        return run(connection, options)
    except (OSError, WorldAccess) as problem:
        print(problem, file=sys.stderr)
    except (ValueError, TypeError, KeyError):
        print(
            f"{path} is no connection file of a cluster with SFM: such a file is called "
            f"ipcontroller-engine.json, and the controller runs in an environment with sfm-kernel",
            file=sys.stderr,
        )
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
