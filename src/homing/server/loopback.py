"""Which addresses are this machine itself."""

from __future__ import annotations

from ipaddress import ip_address

LOCALHOST = "localhost"


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a host: `localhost`, 127.0.0.0/8, ::1."""
    name = host.strip("[]").casefold()
    if name == LOCALHOST or name.endswith("." + LOCALHOST):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def host_of(header: str) -> str:
    """The name in a Host header, without its port."""
    if header.startswith("["):
        return header.partition("]")[0][1:]
    return header.rpartition(":")[0] if header.count(":") == 1 else header
