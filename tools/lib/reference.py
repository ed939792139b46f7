# SPDX-License-Identifier: BSD-3-Clause
"""The configuration of a node of the reference (SLUICE_FIPS_BIN), as all tests and tools that run one write it."""

TUN = """tun:
  enabled: true
  name: fips0
  mtu: 1280
dns:
  enabled: true
  bind_addr: "::1"
  port: 5354
"""
NO_TUN = """tun:
  enabled: false
dns:
  enabled: false
"""


def udp(bind="0.0.0.0", more=""):
    """A UDP transport; more: further keys, ', key: value'."""
    return f"  udp: {{ bind_addr: \"{bind}:2121\"{more} }}\n"


def config(secret, socket, transports, peers="peers: []\n", node="", tun=True):
    """YAML. transports: the lines below `transports:`; peers: the whole block; node: further lines of `node:`, indented by two."""
    return f"""node:
  identity:
    nsec: "{secret}"
  control:
    socket_path: "{socket}"
{node}{TUN if tun else NO_TUN}transports:
{transports}{peers}"""
