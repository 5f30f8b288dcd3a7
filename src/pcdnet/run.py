"""Run: the folder of a training."""
