"""The first words between a client and us: which protocol, who, and how much at once."""

from __future__ import annotations

from typing import Any

from homing import __version__
from homing.channels import PROTOCOL_VERSION, Channels
from homing.ipc.limits import Limits
from homing.ipc.rpc import INVALID_PARAMS, PROTOCOL_MISMATCH, Id, ProtocolFault


def greet(request_id: Id, params: Any, channels: Channels, limits: Limits) -> dict[str, Any]:
    """What `initialize` answers. Fields that are not known are left alone: a newer client may send them."""
    asked = params.get("protocolVersion") if isinstance(params, dict) else None
    if isinstance(asked, bool) or not isinstance(asked, int):
        raise ProtocolFault(
            INVALID_PARAMS,
            "INVALID_ARGUMENT",
            f'initialize takes {{"protocolVersion": {PROTOCOL_VERSION}}}, a whole number',
            request_id=request_id,
        )
    if asked != PROTOCOL_VERSION:
        older = "the client" if asked < PROTOCOL_VERSION else "Homing"
        raise ProtocolFault(
            PROTOCOL_MISMATCH,
            "PROTOCOL_MISMATCH",
            f"the client speaks version {asked} of the protocol, Homing {__version__} speaks {PROTOCOL_VERSION}; "
            f"update {older}",
            request_id=request_id,
            asked=asked,
            supported=[PROTOCOL_VERSION],
        )
    return {
        "protocolVersion": PROTOCOL_VERSION,
        "server": {"name": "homing", "version": __version__},
        "channels": channels.names,
        "limits": {
            "messageBytes": limits.message_bytes,
            "pending": limits.pending,
            "pendingBytes": limits.pending_bytes,
        },
    }
