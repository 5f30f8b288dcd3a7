"""Output: what a run leaves behind, as figures and files; NumPy only."""
