"""Copies of the package's notebooks, below the folder that this server shows, for its user."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jupyter_server.utils import url_path_join
from tornado import web

from sfm_kernel.jupyter.server.handlers import Handler, Refused, Service, require
from sfm_kernel.lessons.students import NotebookError, first_copy


class NotebooksHandler(Handler):
    """Copies the notebooks."""

    @web.authenticated
    async def post(self) -> None:
        """Copy them unless they are there; answer the first one's path in the file browser."""
        await require(self, "write", "contents")
        root = Path(self.settings["server_root_dir"]).expanduser()
        try:
            path = await self.read(lambda: first_copy(root))
        except NotebookError as problem:
            raise Refused(409, str(problem)) from None
        self.finish(json.dumps({"path": path.relative_to(root).as_posix()}))


def routes(base_url: str, service: Service) -> list[tuple[str, type[Any], dict[str, Service]]]:
    """The handler with its path."""
    return [(url_path_join(base_url, "sfm/notebooks"), NotebooksHandler, {"service": service})]
