# SPDX-License-Identifier: BSD-3-Clause
"""What happens to frames between the programs of a lab: a wire that loses a known share and counts it, the kernel's counts.

nftables stands on the nodes' side of each veth pair: on the way out before the pair, on the way in after it. Frames that carry
a payload of the stream are known by their length, so data is counted apart from handshakes, reports and the like.
"""
import json

import lab

# FMP frame and datagram header around a payload, the UDP header: what the UDP length field of a data frame is larger by.
OVERHEAD = 72 + 8
# The same around a UDP payload of an IPv6 packet of the reference: FIPS's IPv6 overhead, IPv6 and UDP, our UDP. Up to
# COORDS more while it shows coordinates; a filter is longer than both.
OVERHEAD_IPV6 = 77 + 48 + 8
COORDS = 300
RULES = """
table netdev sluice {{
  {counters}
  chain way_out {{ type filter hook egress device "eth0" priority 0; policy accept;
    {out}
  }}
  chain way_in {{ type filter hook ingress device "eth0" priority 0; policy accept;
    {in_}
  }}
}}
"""
WAYS = ("out", "in")
# At the relay's ports: the packet socket has its copy by then. What a node sends as one big packet for the kernel to cut (UDP
# segmentation, as the reference does) is counted here as the frames that it became.
ARRIVED = """
table netdev sluice {{
  counter from_a {{ }}
  counter from_b {{ }}
  chain from_a {{ type filter hook ingress device "eth-a" priority 0; policy accept; udp length {0} counter name from_a; }}
  chain from_b {{ type filter hook ingress device "eth-b" priority 0; policy accept; udp length {0} counter name from_b; }}
}}
"""


def rules(udp_lengths, loss_percent):
    share = round(loss_percent * 1000)
    chains = {}
    for way in WAYS:
        chains[way] = "\n    ".join((
            f"udp length {udp_lengths} jump data_{way}", f"meta l4proto udp jump other_{way}", ))
    counters = [f"counter {kind}{name} {{ }}" for kind in ("", "other_") for name in ("out", "in", "lost_out", "lost_in")]
    sub = ""
    for way in WAYS:
        for kind, chain in (("", "data"), ("other_", "other")):
            lose = f"numgen random mod 100000 < {share} counter name {kind}lost_{way} drop\n    " if share else ""
            sub += f"  chain {chain}_{way} {{\n    counter name {kind}{way}\n    {lose}accept\n  }}\n"
    return RULES.format(counters="\n  ".join(counters) + "\n" + sub, out=chains["out"], in_=chains["in"])


class Wire:
    """The two links of a lab. udp_lengths: of data frames, N or N-M; loss_percent on each way of each."""

    def __init__(self, stage, udp_lengths, loss_percent):
        self.stage = stage
        for n, text in (("a", rules(udp_lengths, loss_percent)), ("b", rules(udp_lengths, loss_percent)),
                        ("r", ARRIVED.format(udp_lengths))):
            path = stage.path(f"wire-{n}.nft")
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            lab.sh("ip", "netns", "exec", stage.ns(n), "nft", "-f", path)

    def _counters(self, n):
        text = lab.sh("ip", "netns", "exec", self.stage.ns(n), "nft", "-j", "list", "counters")
        return {c["counter"]["name"]: c["counter"]["packets"] for c in json.loads(text)["nftables"] if "counter" in c}

    def data(self, n, name):
        """Data frames at node n: out, in (before the loss), lost_out, lost_in."""
        return self._counters(n)[name]

    def arrived(self, n):
        """Data frames from node n at the relay's port."""
        return self._counters("r")[f"from_{n}"]

    def _device(self, n, dev):
        text = lab.sh("ip", "-n", self.stage.ns(n), "-s", "-j", "link", "show", "dev", dev)
        return json.loads(text)[0]["stats64"]

    def relay(self):
        """Lost between the wire and the relay's ports, by who counted it."""
        lost = {}
        for n in "ab":
            near, far = self._device(n, "eth0"), self._device("r", f"eth-{n}")
            lost[f"veth_{n}_tx_dropped"] = near["tx"]["dropped"]
            lost[f"veth_{n}_from_relay_dropped"] = far["tx"]["dropped"]
        ports = (self.stage.show("ports") or {}).get("ports") or []
        for p in ports:
            n = p["name"][-1]
            seen = self._device("r", f"eth-{n}")["rx"]["packets"]
            lost[f"packet_socket_{n}"] = max(seen - p["rx_packets"], 0)
        return lost

    def kernel(self, n):
        """Datagrams that node n's kernel had and its socket did not get."""
        text = lab.sh("ip", "netns", "exec", self.stage.ns(n), "cat", "/proc/net/snmp", "/proc/net/snmp6")
        lost = {}
        rows = [line.split() for line in text.splitlines() if line.startswith("Udp:")]
        for key, value in zip(rows[0][1:], rows[1][1:]):
            if key in ("InErrors", "NoPorts"):
                lost["udp_" + key] = int(value)
        return lost
