"""Measurements that take too long or are too noisy for tests; each prints one JSON line last."""
