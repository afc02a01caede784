"""The scheduler: gives every instruction its cycle."""
