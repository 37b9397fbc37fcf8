"""The channels of desktop apps, under the name that the design gives them."""

from homing.channels import CHANNELS, Channels, Envelope, Work, schemas

__all__ = ["CHANNELS", "Channels", "Envelope", "Work", "schemas"]
