"""Drilling: the drills that need more than kills and damaged files, one each; each counts what was tried and lost."""
