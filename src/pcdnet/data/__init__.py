"""Data sources: each reads or makes Scenes."""
