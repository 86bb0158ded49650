"""Kinds of servers: their addresses, their keys, and what to do when they refuse."""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

from agentgym.errors import InvalidOption


@dataclass(frozen=True)
class Service:
    """A kind of server, as far as users see it.

    Attributes:
        prefix: What its models' names begin with.
        url: Of the provider itself; used if no other is given.
        url_variable: Environment variable of another address.
        key_variables: Environment variables of the key; the first one set counts.
        hint: How addresses of this kind end, for the advice after status 404.
    """

    prefix: str
    url: str
    url_variable: str
    key_variables: tuple[str, ...]
    hint: str = ""

    def address(self, given: str | None) -> str:
        """The address to ask: the given one, else the environment's, else the provider's."""
        return (given or os.environ.get(self.url_variable) or self.url).rstrip("/")

    def key(self, url: str) -> str:
        """The key, "none" where another server than the provider's may need none.

        Raises:
            InvalidOption: The provider needs one, and none is set.
        """
        for variable in self.key_variables:
            if key := os.environ.get(variable, "").strip():
                return key
        if url == self.url:
            raise InvalidOption(
                f"{self.url} needs a key; set the environment variable {self.key_variables[0]}, "
                "or give the address of another server with --base-url."
            )
        return "none"

    def advice(self, status: int) -> str:
        """What to do about a refusal with this status."""
        variable = self.key_variables[0]
        table = {
            401: f"set {variable} to a key of this server",
            403: f"the key in {variable} may not use this model",
            404: f"check --base-url{self.hint} and the model's name",
            429: "the account's quota is spent; add credit and give the same command again",
        }
        return table.get(
            status,
            "check the model's name, the key and the sampling options (some models take only "
            "--temperature 1 --top-p 1)",
        )


def public(url: str) -> str:
    """The address without user, password and query, which may be secret.

    Raises:
        InvalidOption: It is no address.
    """
    try:
        parts = urlsplit(url)
        named = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        named, parts = False, urlsplit("")
    if not named:
        raise InvalidOption(
            f"base_url is an address such as http://127.0.0.1:8000/v1, got {url!r}."
        )
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


class Secrets(NamedTuple):
    """What an address holds that must not stand in a record.

    Attributes:
        headers: `Authorization` of its user and password, in place of a key's; else nothing.
        query: Its parameters.
    """

    headers: dict[str, str]
    query: dict[str, object]


def secrets(url: str) -> Secrets:
    """What `public` leaves out, as a request carries it."""
    parts = urlsplit(url)
    login = parts.netloc.rpartition("@")[0]
    encoded = base64.b64encode(unquote(login).encode()).decode()
    headers = {"Authorization": f"Basic {encoded}"} if login else {}
    return Secrets(headers, dict(parse_qsl(parts.query)))


def loopback(url: str) -> bool:
    """Whether the address is this machine, to which no proxy of the environment leads."""
    host = urlsplit(url).hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")
