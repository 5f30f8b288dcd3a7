"""Serve: a run in the browser, and the same over HTTP for programs."""
