"""C2C: point-to-point links to other tiles and to the host."""

from hdl.c2c.messages import message_members
from hdl.c2c.unit import C2c

__all__ = ["C2c", "message_members"]
