"""The one error type of the package: mistakes that a user can cure."""


class PcdnetError(Exception):
    """Something the user gave cannot be used; the message says what, which value, and how to cure it."""
