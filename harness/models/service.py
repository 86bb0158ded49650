"""Kinds of servers: their addresses, their keys, and what to do when they refuse."""

from __future__ import annotations

import base64
import ipaddress
import os
import re
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from agentgym.errors import InvalidOption

_ADDRESS = re.compile(
    r"""(?P<scheme>.*?://)          # With all that stands before it.
    (?:[^/?#]*@)?                   # User and password.
    (?P<host>[^/?#]*)(?P<path>[^?#]*)""",
    re.VERBOSE | re.DOTALL,
)
_HOST = re.compile(r"(\[[^\[\]@]*\]|[^\[\]:@]*)(:\d*)?")
_SECRET = 12  # Characters of the shortest text that is surely one.
_IN_TEXT = re.compile(r"[a-z][a-z0-9+.-]*://\S*", re.IGNORECASE)


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
        """The address to ask: the given one, else the environment's, else the provider's.

        Raises:
            InvalidOption: It is no address.
        """
        url = (given or os.environ.get(self.url_variable) or self.url).rstrip("/")
        _check(url)
        return url

    def key(self, url: str) -> str:
        """The key, "none" where another server than the provider's may need none.

        Raises:
            InvalidOption: The provider needs one, and none is set; or it cannot be sent.
        """
        for variable in self.key_variables:
            if key := os.environ.get(variable, "").strip():
                if not (key.isascii() and key.isprintable()):
                    raise InvalidOption(
                        f"The key in {variable} has a character that no request can carry; copy "
                        "it anew."
                    )
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


def _check(url: str) -> None:
    try:
        parts = urlsplit(url)
        named = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        named = named and url.isprintable() and " " not in url
        _check_host(parts.hostname or "")
    except ValueError:
        named = False
    if not named:
        shown = "..." if "@" in url else re.split("[?#]", url)[0]  # No password, no parameters.
        raise InvalidOption(
            f"base_url is an address such as http://127.0.0.1:8000/v1, got {shown!r}."
        )


def _check_host(host: str) -> None:
    """Raise a ValueError, as clients would with each request, if nobody can be called that."""
    host.encode("idna")
    if re.fullmatch(r"\d+(\.\d+){3}", host):
        ipaddress.ip_address(host)


def public(url: str) -> str:
    """The address without user, password, query and fragment, which may be secret.

    Of one that cannot be read, so that nobody knows where a password ends, only the scheme is left.
    What stands before the scheme (`--base-url=`) stays, and so does a text without "://".

    Args:
        url: Any text; never refused.
    """
    found = _ADDRESS.match(url)
    if found is None:
        return url
    if not _HOST.fullmatch(found["host"]):
        return f"{found['scheme']}..."
    return found["scheme"] + found["host"] + found["path"]


def without_secrets(text: str) -> str:
    """The text with each address in it, up to the next space, cut as by `public`."""
    return _IN_TEXT.sub(lambda address: public(address[0]), text)


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


def hidden(url: str, key: str) -> tuple[str, ...]:
    """What is cut out of all texts: the key, and what is secret in the address; longest first.

    Args:
        url: With user, password and parameters, if it has them.
        key: Of the server.
    """
    parts = urlsplit(url)
    login = parts.netloc.rpartition("@")[0]
    values = [pair.partition("=")[2] for pair in parts.query.split("&")]
    found = [key, login, login.partition(":")[2], *values]
    found += [unquote(each) for each in found]
    found += [head.removeprefix("Basic ") for head in secrets(url).headers.values()]
    # A short key is a local server's dummy, and its letters may stand in any reply.
    secret = dict.fromkeys(each for each in found if len(each) >= _SECRET)
    return tuple(sorted(secret, key=len, reverse=True))


def loopback(url: str) -> bool:
    """Whether the address is this machine, to which no proxy of the environment leads."""
    host = urlsplit(url).hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")
