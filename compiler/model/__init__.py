"""Models: architecture, import, and the float32 reference."""
