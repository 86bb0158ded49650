"""Joining a Ray cluster, and what it has."""

from __future__ import annotations

import logging
import os
import re
import socket
from collections.abc import Mapping
from typing import Any

import ray

from agentgym.errors import AgentGymError, InvalidOption

LOCAL = "local"
"""The address that starts a cluster on this machine alone, for as long as the run takes."""
AUTO = "auto"
"""The address that means the cluster that this machine belongs to."""


class ClusterError(AgentGymError):
    """A Ray cluster that cannot be reached, does not fit, or has nothing left to play on."""


def join(address: str) -> None:
    """Connect this process to a Ray cluster.

    Args:
        address: "auto", "local", or HOST:PORT of the head.

    Raises:
        InvalidOption: None of these.
        ClusterError: No cluster is there.
    """
    if address not in (LOCAL, AUTO) and not re.fullmatch(r"[^/\s]+:\d+", address):
        raise InvalidOption(
            f"--ray takes auto, local or HOST:PORT of the cluster's head, got {address!r}; run the "
            "command on a machine of the cluster."
        )
    # Else Ray asks its makers' server, and warns of what a later version will do.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    alone: dict[str, Any] = {"include_dashboard": False, "_node_ip_address": "127.0.0.1"}
    extra = alone if address == LOCAL else {}
    try:
        if address not in (LOCAL, AUTO):
            _knock(address)
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **extra)
    except (OSError, RuntimeError, ValueError) as fault:
        raise ClusterError(
            f"Cannot join the Ray cluster {address!r}: {' '.join(str(fault).split())} Start one "
            "with `ray start --head`, or give --ray local."
        ) from fault


def _knock(address: str) -> None:
    """Raise at once where nobody listens; Ray would try for more than a minute."""
    host, _, port = address.rpartition(":")
    socket.create_connection((host, int(port)), timeout=5).close()


def nodes() -> list[Mapping[str, float]]:
    """Resources of every node that is alive."""
    return [node["Resources"] for node in ray.nodes() if node["Alive"]]
