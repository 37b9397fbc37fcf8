"""The contract that desktop apps and editors speak: named channels, checked requests, one envelope.

Channels(app).invoke("embedding:search", {"projectId": "novel", "query": "孤独的感觉"})
"""

from homing.channels.dispatcher import Channels, Work
from homing.channels.envelope import Envelope
from homing.channels.messages import CHANNELS, PROTOCOL_VERSION, schemas

__all__ = ["CHANNELS", "PROTOCOL_VERSION", "Channels", "Envelope", "Work", "schemas"]
