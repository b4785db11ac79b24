"""Policies that collect, controllers that are learned offline, and how they are saved (DESIGN sections 3, 8)."""
