"""Baselines: what others would use instead, written for comparison; no part of the package, which never imports it."""
