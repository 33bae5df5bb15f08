"""``python -m sfm_kernel.gateway --world NAME --site A`` is a gateway of site A until killed."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from sfm_kernel.directory.signals import ending
from sfm_kernel.errors import SFMError
from sfm_kernel.gateway.options import from_environment, parser
from sfm_kernel.gateway.service import Service


def main(arguments: list[str] | None = None, environment: Mapping[str, str] = os.environ) -> int:
    """Serve until SIGINT or SIGTERM; return the exit status."""
    commands = parser()
    options = commands.parse_args(arguments)
    if not options.world:
        commands.error("the world's name is needed: --world, or SFM_WORLD")
    end = ending()
    try:
        service = Service(
            options.world,
            *from_environment(environment),
            options.site,
            bind=options.bind,
            weights=dict(options.weight),
            algorithm=options.algorithm,
            connections=options.connections,
            mptcp=options.mptcp,
            pacing=options.rate,
            scheduler=options.scheduler,
            delay=options.delay,
            limit=options.limit,
        )
    except SFMError as error:
        print(error, file=sys.stderr)
        return 1
    with service:
        status = service.status()
        print(
            f"gateway {service.gateway.name} of site {service.gateway.site!r} at "
            f"{service.gateway.address}: {status['algorithm']}, {status['connections']} to each "
            f"other gateway ({status['why']})",
            flush=True,
        )
        if status["emulation"]:
            print(f"note: {status['emulation']['cannot_show']}", flush=True)
        service.serve(end)
    return 0


if __name__ == "__main__":
    sys.exit(main())
