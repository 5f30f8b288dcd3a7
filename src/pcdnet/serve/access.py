"""Access: by which names this machine is known, and who has the token."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
import secrets
import socket
from collections.abc import Iterable
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.types import Scope

from pcdnet.errors import PcdnetError, Setting

LOCAL_HOSTS = frozenset(("localhost", "127.0.0.1", "[::1]"))
"""The names under which a server on this machine is known to itself."""
TOKEN_VARIABLE = "PCDNET_TOKEN"
"""The environment variable that may hold the token."""
SHORTEST = 16
"""Characters of a token at least."""


def is_local(host: str) -> bool:
    """Whether only this machine can reach a server on this address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def known_hosts(host: str, allowed: Iterable[str] = ()) -> frozenset[str]:
    """The names that a request to a server on an address may give it: those of loopback, the machine's, and others.

    The machine's addresses are not among them: `is_known` sees which one a request came to.
    """
    own = [] if is_local(host) else [name := socket.gethostname(), f"{name.partition('.')[0]}.local", host]
    for name in (given := list(allowed)):
        if not re.fullmatch(r"[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]", name):
            problem = f"{name!r} is no name of a host, which has neither scheme nor port; use "
            raise PcdnetError(problem, Setting("allow_host", "lab.example.org"))
    return LOCAL_HOSTS | {name.lower() for name in (*own, *given) if name}


def hostname(host: str) -> str:
    """The name in a Host header, without its port."""
    name, colon, port = host.rpartition(":")
    return (name if colon and (port.isdecimal() or not port) else host).lower()


def is_known(scope: Scope, hosts: frozenset[str]) -> bool:
    """Whether a request names us: by one of the names, or by the very address that it came to.

    A name that a stranger pointed at this machine is neither.
    """
    name = hostname(Headers(scope=scope).get("host", ""))
    if name in hosts:
        return True
    named, reached = _address(name.strip("[]")), _address((scope.get("server") or ("",))[0])
    return named is not None and named == reached


def client_at(host: str) -> str:
    """Who asks, as far as an address tells: of IPv6, whoever has one usually has all with the same first half."""
    found = _address(host)
    if isinstance(found, ipaddress.IPv6Address) and not found.is_loopback:
        return str(ipaddress.ip_network((found, 64), strict=False))
    return host if found is None else str(found)


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        found = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found


class Token:
    """What whoever asks must know; it is compared in a time that says nothing about it.

    Programs send it as `Authorization: Bearer TOKEN`. A browser opens the page with `?token=TOKEN` once, and has a
    cookie from then on, which no script can read and no other site can send.
    """

    def __init__(self, token: str) -> None:
        if not re.fullmatch(r"[A-Za-z0-9._~-]+", token):
            problem = "the token has characters that an address cannot hold; use letters, digits, - and _ as "
            raise PcdnetError(problem, Setting("token", secrets.token_urlsafe(SHORTEST)))
        if len(token) < SHORTEST:
            problem = f"a token of {len(token)} characters can be guessed; use {SHORTEST} or more, for example "
            raise PcdnetError(problem, Setting("token", secrets.token_urlsafe(SHORTEST)))
        self._digest = _digest(token)

    def fits(self, scope: Scope) -> bool:
        """Whether a request has the token, as a program or with a browser's cookie."""
        headers = Headers(scope=scope)
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            return hmac.compare_digest(_digest(given.strip()), self._digest)
        # Python's own reader of cookies takes minutes for one that is full of escaped quotes.
        cookies = (each.partition("=") for each in headers.get("cookie", "").split(";"))
        given = next((value for name, _, value in cookies if name.strip() == _cookie_name(scope)), "")
        return hmac.compare_digest(given.strip().encode(), self._digest.encode())

    def opens(self, scope: Scope) -> bool:
        """Whether a browser opens a page with it."""
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])
        return scope["method"] == "GET" and hmac.compare_digest(_digest(given[0]), self._digest)

    def cookie(self, scope: Scope) -> str:
        """What makes a browser remember it: not the token itself, since all ports of a machine share their cookies."""
        return f"{_cookie_name(scope)}={self._digest}; Path=/; HttpOnly; SameSite=Strict"


def _digest(token: str) -> str:
    return hashlib.sha256(f"pcdnet {token}".encode(errors="replace")).hexdigest()


def _cookie_name(scope: Scope) -> str:
    return f"pcdnet-{(scope.get('server') or ('', ''))[1]}"
