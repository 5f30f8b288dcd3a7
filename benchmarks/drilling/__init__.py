"""Drilling: what goes wrong around pcdnet, done on purpose."""
