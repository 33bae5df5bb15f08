"""The address of a directory server, as it is printed, and given to processes and gateways."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sfm_kernel.errors import WorldError

_FORM = re.compile(r"(tcp://[^/\s]+:\d+)(?:/([0-9a-f]{64}))?")


@dataclass(frozen=True)
class ServerAddress:
    """Where a directory server listens, and by which key it is recognised there.

    Its text is "tcp://10.0.0.7:41234/" and the key in 64 hexadecimal digits: nothing that a shell
    or a JSON file would take for something else.

    Attributes:
        place: "tcp://10.0.0.7:41234".
        public: the public half of the server's key pair, 32 bytes. Whoever listens there and does
            not have the secret half is not talked to.
    """

    place: str
    public: bytes

    def __str__(self) -> str:
        return f"{self.place}/{self.public.hex()}"

    @classmethod
    def parse(cls, text: str) -> ServerAddress:
        """The address that ``str`` has written; raises WorldError on anything else."""
        found = _FORM.fullmatch(text)
        if found is None:
            raise WorldError(
                f"{text!r} is no address of a directory server: 'tcp://IP:port/KEY' is needed, as "
                f"`python -m sfm_kernel.directory` prints it"
            )
        place, public = found.groups()
        if public is None:
            raise WorldError(
                f"the address {place} lacks the directory server's public key: copy all that "
                f"`python -m sfm_kernel.directory` prints for SFM_DIRECTORY, with the 64 digits at "
                f"its end"
            )
        return cls(place, bytes.fromhex(public))
