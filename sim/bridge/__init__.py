"""The host's end of a bridge: the loader over a byte stream."""
