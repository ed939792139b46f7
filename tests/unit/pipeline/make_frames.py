#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes frames_scapy.h and seeds for the fuzz targets: frames built by scapy, which computes every length and checksum, with the verdict each
must get. Run by hand when a frame is added; the result is committed so that tests need no scapy.
The receiving port: see local_default() in pipeline_test.h."""
import os

from scapy.all import (ARP, Dot1AD, Dot1Q, Ether, ICMP, ICMPv6EchoRequest, ICMPv6EchoReply, ICMPv6ND_NA, ICMPv6ND_NS,
                       ICMPv6ND_RS, ICMPv6NDOptDstLLAddr, ICMPv6NDOptSrcLLAddr, ICMPv6PacketTooBig, IP, IPv6,
                       IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop, IPv6ExtHdrRouting,
                       IPOption_NOP, IPOption_Router_Alert, HBHOptUnknown, Padding, PadN, Raw, RouterAlert, TCP, UDP)

US, PEER = "02:00:00:00:00:01", "02:00:00:00:00:99"
US4, PEER4 = "192.0.2.1", "192.0.2.9"
US6, PEER6 = "2001:db8::1", "2001:db8::9"
LL, PEERLL = "fe80::ff:fe00:1", "fe80::ff:fe00:99"
SOL, SOLMAC = "ff02::1:ff00:1", "33:33:ff:00:00:01"

def fmp(n, phase=0):
    """An FMP packet of n bytes with a right prefix."""
    body = {0: n - 32, 1: 110, 2: 65}[phase]
    return bytes([phase, 0]) + body.to_bytes(2, "little") + bytes((i * 7 + 1) & 255 for i in range(n - 4))

E, E60 = fmp(32), fmp(60)
e = Ether(dst=US, src=PEER)
ip = IP(src=PEER4, dst=US4)
ip6 = IPv6(src=PEER6, dst=US6)
udp = UDP(sport=5555, dport=2121)
pad = Padding(b"\xaa" * 9)
frames = []

def add(name, frame, verdict, kind="", frm="", off=0, ln=0, hints=0, vlan=0):
    frames.append((name, bytes(frame), verdict, kind, frm, off, ln, hints, vlan))

def good(name, frame, frm="U4", off=42, ln=60, **kw):
    add(name, frame, "FORWARD", "ESTABLISHED", frm, off, ln, **kw)

def raw(src=PEER, dst=US, data=b"", et=0x2121):
    return Ether(src=src, dst=dst, type=et) / Raw(data)

# --- accepted ---
good("ip4", e / ip / udp / E60)
good("ip4_padded", e / ip / UDP(sport=5555, dport=2121) / E60 / pad)
good("ip4_zero_checksum", e / ip / UDP(sport=5555, dport=2121, chksum=0) / E60)
good("ip4_options", e / IP(src=PEER4, dst=US4, options=[IPOption_Router_Alert(), IPOption_NOP()]) / udp / E60, off=50)
good("ip4_df_tos_ttl1", e / IP(src=PEER4, dst=US4, flags="DF", tos=0xb8, ttl=1) / udp / E60)
good("ip4_reserved_bit", e / IP(src=PEER4, dst=US4, flags="evil") / udp / E60)
good("ip4_priority_tag", e / Dot1Q(vlan=0, prio=5) / ip / udp / E60, off=46)
good("ip4_vlan", e / Dot1Q(vlan=7) / ip / udp / E60, off=46, vlan=7)
good("ip4_vlan_8021ad", e / Dot1AD(vlan=7) / ip / udp / E60, off=46, vlan=7)
good("ip4_vlan_stripped", e / ip / udp / E60, vlan=7, hints=0x00070004)
good("ip6", e / ip6 / udp / E60, frm="U6", off=62)
good("ip6_padded", e / ip6 / udp / E60 / pad, frm="U6", off=62)
good("ip6_link_local", e / IPv6(src=PEERLL, dst=LL) / udp / E60, frm="U6L", off=62)
good("ip6_vlan", e / Dot1Q(vlan=7) / ip6 / udp / E60, frm="U6", off=66, vlan=7)
good("ip6_hop_by_hop", e / ip6 / IPv6ExtHdrHopByHop(options=[RouterAlert(), PadN(optdata=b"\0\0")]) / udp / E60, frm="U6", off=78)
good("ip6_hop_dest_routing", e / ip6 / IPv6ExtHdrHopByHop() / IPv6ExtHdrDestOpt(options=[HBHOptUnknown(otype=0x1e, optdata=b"abc")])
     / IPv6ExtHdrRouting(type=0, segleft=0, addresses=[PEER6]) / udp / E60, frm="U6", off=62 + 8 + 8 + 24)
good("eth", raw(data=b"\0" + (60).to_bytes(2, "little") + E60), frm="ETH", off=17)
good("eth_padded", raw(data=b"\0" + (32).to_bytes(2, "little") + E + bytes(11)), frm="ETH", off=17, ln=32)
good("eth_vlan", Ether(src=PEER, dst=US) / Dot1Q(vlan=7, type=0x2121) / Raw(b"\0" + (60).to_bytes(2, "little") + E60),
     frm="ETH7", off=21, vlan=7)
add("ip4_msg1", e / ip / udp / fmp(114, 1), "PUNT", "HANDSHAKE", "U4", 42, 114)
add("ip6_msg2", e / ip6 / udp / fmp(69, 2), "PUNT", "HANDSHAKE", "U6", 62, 69)
add("ip4_bound_port", e / ip / UDP(sport=5555, dport=4000) / E60, "FORWARD", "ESTABLISHED", "U4B", 42, 60)
add("eth_beacon", raw(dst="ff:ff:ff:ff:ff:ff", data=b"\x01\x01" + bytes(range(32)) + bytes(12)), "PUNT", "BEACON", "ETH", 16, 32)
# --- for control ---
for name, f in {
    "arp_request": Ether(src=PEER, dst="ff:ff:ff:ff:ff:ff") / ARP(op=1, hwsrc=PEER, psrc=PEER4, pdst=US4),
    "arp_reply": e / ARP(op=2, hwsrc=PEER, psrc=PEER4, hwdst=US, pdst=US4) / Raw(bytes(18)),
    "arp_gratuitous": Ether(src=PEER, dst="ff:ff:ff:ff:ff:ff") / ARP(op=1, hwsrc=PEER, psrc=PEER4, pdst=PEER4),
    "arp_own_address": Ether(src=PEER, dst="ff:ff:ff:ff:ff:ff") / ARP(op=1, hwsrc=PEER, psrc=US4, pdst="192.0.2.77"),
    "echo4": e / ip / ICMP(id=1, seq=2) / b"abcdefg",
    "frag_needed4": e / ip / ICMP(type=3, code=4, nexthopmtu=1300) / IP(src=US4, dst=PEER4) / UDP(),
    "ns": Ether(src=PEER, dst=SOLMAC) / IPv6(src=PEER6, dst=SOL, hlim=255) / ICMPv6ND_NS(tgt=US6) / ICMPv6NDOptSrcLLAddr(lladdr=PEER),
    "ns_unicast": e / IPv6(src=PEER6, dst=US6, hlim=255) / ICMPv6ND_NS(tgt=US6),
    "ns_unspecified": Ether(src=PEER, dst=SOLMAC) / IPv6(src="::", dst=SOL, hlim=255) / ICMPv6ND_NS(tgt=US6),
    "na": e / IPv6(src=PEER6, dst=US6, hlim=255) / ICMPv6ND_NA(tgt=PEER6, R=0, S=1, O=1) / ICMPv6NDOptDstLLAddr(lladdr=PEER),
    "na_all_nodes": Ether(src=PEER, dst="33:33:00:00:00:01") / IPv6(src=PEER6, dst="ff02::1", hlim=255)
        / ICMPv6ND_NA(tgt=PEER6, R=0, S=0, O=1) / ICMPv6NDOptDstLLAddr(lladdr=PEER),
    "echo6": e / ip6 / ICMPv6EchoRequest(id=1, seq=2, data=b"abcdefg"),
    "echo6_link_local": e / IPv6(src=PEERLL, dst=LL) / ICMPv6EchoRequest(id=1, seq=2, data=b"abc"),
    "too_big6": e / ip6 / ICMPv6PacketTooBig(mtu=1300) / IPv6(src=US6, dst=PEER6) / UDP(),
}.items():
    add(name, f, "PUNT", "NEIGH")
# --- refused ---
bad = [
    ("ethertype_lldp", raw(et=0x88cc, data=bytes(46)), "ETHERTYPE"),
    ("ethertype_length", raw(et=0x0040, data=bytes(64)), "ETHERTYPE"),
    ("vlan_unwanted", e / Dot1Q(vlan=7) / ip / udp / E60, "VLAN"),
    ("vlan_double", e / Dot1AD(vlan=0) / Dot1Q(vlan=0) / ip / udp / E60, "VLAN"),
    ("mac_other", Ether(src=PEER, dst="02:00:00:00:00:02") / ip / udp / E60, "NOT_OURS"),
    ("mac_group", Ether(src=PEER, dst="01:00:5e:00:00:01") / ip / udp / E60, "NOT_OURS"),
    ("ip4_mac_broadcast", Ether(src=PEER, dst="ff:ff:ff:ff:ff:ff") / ip / udp / E60, "NOT_OURS"),
    ("ip4_other", e / IP(src=PEER4, dst="192.0.2.3") / udp / E60, "NOT_OURS"),
    ("ip4_broadcast", e / IP(src=PEER4, dst="192.0.2.255") / udp / E60, "NOT_OURS"),
    ("ip6_other", e / IPv6(src=PEER6, dst="2001:db8::2") / udp / E60, "NOT_OURS"),
    ("ip6_udp_to_group", Ether(src=PEER, dst=SOLMAC) / IPv6(src=PEER6, dst=SOL) / udp / E60, "NOT_OURS"),
    ("ip6_echo_to_group", Ether(src=PEER, dst="33:33:00:00:00:01") / IPv6(src=PEER6, dst="ff02::1") / ICMPv6EchoRequest(), "NOT_OURS"),
    ("ip6_other_group", Ether(src=PEER, dst="33:33:ff:00:00:02") / IPv6(src=PEER6, dst="ff02::1:ff00:2", hlim=255)
     / ICMPv6ND_NS(tgt="2001:db8::2"), "NOT_OURS"),
    ("arp_other", Ether(src=PEER, dst="ff:ff:ff:ff:ff:ff") / ARP(op=1, hwsrc=PEER, psrc=PEER4, pdst="192.0.2.3"), "NOT_OURS"),
    ("mac_source_group", Ether(src="03:00:00:00:00:99", dst=US) / ip / udp / E60, "SOURCE"),
    ("ip4_source_own", e / IP(src=US4, dst=US4) / udp / E60, "SOURCE"),
    ("ip4_source_group", e / IP(src="224.0.0.1", dst=US4) / udp / E60, "SOURCE"),
    ("ip4_source_broadcast", e / IP(src="255.255.255.255", dst=US4) / udp / E60, "SOURCE"),
    ("ip4_source_directed", e / IP(src="192.0.2.255", dst=US4) / udp / E60, "SOURCE"),
    ("ip4_source_zero", e / IP(src="0.0.0.0", dst=US4) / udp / E60, "SOURCE"),
    ("ip4_source_loopback", e / IP(src="127.0.0.1", dst=US4) / udp / E60, "SOURCE"),
    ("ip4_source_port_0", e / ip / UDP(sport=0, dport=2121) / E60, "SOURCE"),
    ("ip6_source_own", e / IPv6(src=US6, dst=US6) / udp / E60, "SOURCE"),
    ("ip6_source_group", e / IPv6(src="ff02::1", dst=US6) / udp / E60, "SOURCE"),
    ("ip6_source_zero", e / IPv6(src="::", dst=US6) / udp / E60, "SOURCE"),
    ("ip6_source_loopback", e / IPv6(src="::1", dst=US6) / udp / E60, "SOURCE"),
    ("ip6_source_mapped", e / IPv6(src="::ffff:192.0.2.9", dst=US6) / udp / E60, "SOURCE"),
    ("na_unspecified", e / IPv6(src="::", dst=US6, hlim=255) / ICMPv6ND_NA(tgt=PEER6), "SOURCE"),
    ("ip4_total_beyond", e / IP(src=PEER4, dst=US4, len=200) / udp / E60, "TRUNCATED"),
    ("ip6_payload_beyond", e / IPv6(src=PEER6, dst=US6, plen=200) / udp / E60, "TRUNCATED"),
    ("ip4_version_6", e / IP(src=PEER4, dst=US4, version=6) / udp / E60, "IP_HEADER"),
    ("ip4_ihl_4", e / IP(src=PEER4, dst=US4, ihl=4) / udp / E60, "IP_HEADER"),
    ("ip4_total_below_header", e / IP(src=PEER4, dst=US4, len=19) / udp / E60, "IP_HEADER"),
    ("ip4_header_checksum", e / IP(src=PEER4, dst=US4, chksum=0x1234) / udp / E60, "IP_HEADER"),
    ("ip6_version_4", e / IPv6(src=PEER6, dst=US6, version=4) / udp / E60, "IP_HEADER"),
    ("ip4_first_fragment", e / IP(src=PEER4, dst=US4, flags="MF") / udp / E60, "FRAGMENT"),
    ("ip4_last_fragment", e / IP(src=PEER4, dst=US4, frag=10) / udp / E60, "FRAGMENT"),
    ("ip6_fragment", e / ip6 / IPv6ExtHdrFragment(m=1, offset=0) / udp / E60, "FRAGMENT"),
    ("ip6_atomic_fragment", e / ip6 / IPv6ExtHdrFragment(m=0, offset=0) / udp / E60, "FRAGMENT"),
    ("ip6_hop_then_fragment", e / ip6 / IPv6ExtHdrHopByHop() / IPv6ExtHdrFragment() / udp / E60, "FRAGMENT"),
    ("ip6_routing_segments", e / ip6 / IPv6ExtHdrRouting(type=0, segleft=1, addresses=[PEER6]) / udp / E60, "EXTENSION"),
    ("ip6_hop_not_first", e / ip6 / IPv6ExtHdrDestOpt() / IPv6ExtHdrHopByHop() / udp / E60, "EXTENSION"),
    ("ip6_option_discard", e / ip6 / IPv6ExtHdrDestOpt(options=[HBHOptUnknown(otype=0x5e, optdata=b"abc")]) / udp / E60, "EXTENSION"),
    ("ip6_too_many", e / ip6 / IPv6ExtHdrDestOpt() / IPv6ExtHdrDestOpt() / IPv6ExtHdrDestOpt() / IPv6ExtHdrDestOpt()
     / IPv6ExtHdrDestOpt() / IPv6ExtHdrDestOpt() / IPv6ExtHdrDestOpt() / IPv6ExtHdrDestOpt() / IPv6ExtHdrDestOpt() / udp / E60, "EXTENSION"),
    ("ip6_esp", e / IPv6(src=PEER6, dst=US6, nh=50) / Raw(bytes(40)), "EXTENSION"),
    ("ip6_extension_beyond", e / IPv6(src=PEER6, dst=US6, nh=60) / Raw(b"\x11\x20" + bytes(40)), "TRUNCATED"),
    ("ip6_no_next", e / IPv6(src=PEER6, dst=US6, nh=59) / Raw(bytes(40)), "IP_PROTOCOL"),
    ("ip4_tcp", e / ip / TCP(dport=2121), "IP_PROTOCOL"),
    ("ip6_tcp", e / ip6 / TCP(dport=2121), "IP_PROTOCOL"),
    ("echo_reply4", e / ip / ICMP(type=0), "ICMP"),
    ("unreachable4", e / ip / ICMP(type=3, code=1) / Raw(bytes(28)), "ICMP"),
    ("echo_reply6", e / ip6 / ICMPv6EchoReply(), "ICMP"),
    ("router_solicitation", e / ip6 / ICMPv6ND_RS(), "ICMP"),
    ("icmp4_short", e / ip / Raw(b"\x08\0\0\0\0\0\0"), "IP_PROTOCOL"),
    ("ip4_port_other", e / ip / UDP(sport=5555, dport=2122) / E60, "UDP_PORT"),
    ("ip4_port_bound_elsewhere", e / IP(src=PEER4, dst="198.51.100.1") / UDP(sport=5555, dport=4000) / E60, "UDP_PORT"),
    ("ip6_port_ip4_only", e / ip6 / UDP(sport=5555, dport=4000) / E60, "UDP_PORT"),
    ("ip4_udp_longer", e / ip / UDP(sport=5555, dport=2121, len=69) / E60, "UDP_LENGTH"),
    ("ip4_udp_shorter", e / ip / UDP(sport=5555, dport=2121, len=67) / E60, "UDP_LENGTH"),
    ("ip4_udp_7", e / ip / UDP(sport=5555, dport=2121, len=7) / E60, "UDP_LENGTH"),
    ("ip6_udp_longer", e / ip6 / UDP(sport=5555, dport=2121, len=69) / E60, "UDP_LENGTH"),
    ("ip6_no_room_for_udp", e / IPv6(src=PEER6, dst=US6, nh=17) / Raw(bytes(7)), "UDP_LENGTH"),
    ("ip4_udp_checksum", e / ip / UDP(sport=5555, dport=2121, chksum=0x1234) / E60, "UDP_CHECKSUM"),
    ("ip6_udp_checksum", e / ip6 / UDP(sport=5555, dport=2121, chksum=0x1234) / E60, "UDP_CHECKSUM"),
    ("ip6_zero_checksum", e / ip6 / UDP(sport=5555, dport=2121, chksum=0) / E60, "UDP_CHECKSUM"),
    ("eth_length_beyond", raw(data=b"\0" + (61).to_bytes(2, "little") + E60), "ETH_LENGTH"),
    ("eth_type_2", raw(data=b"\2" + bytes(60)), "ETH_TYPE"),
    ("eth_beacon_version_2", raw(dst="ff:ff:ff:ff:ff:ff", data=b"\x01\x02" + bytes(44)), "ETH_TYPE"),
    ("eth_beacon_short", raw(dst="ff:ff:ff:ff:ff:ff", data=b"\x01\x01" + bytes(31)), "TRUNCATED"),
    ("eth_data_broadcast", raw(dst="ff:ff:ff:ff:ff:ff", data=b"\0" + (32).to_bytes(2, "little") + E + bytes(11)), "NOT_OURS"),
    ("eth_source_own", raw(src=US, data=b"\0" + (32).to_bytes(2, "little") + E + bytes(11)), "SOURCE"),
    ("eth_source_zero", raw(src="00:00:00:00:00:00", data=b"\0" + (32).to_bytes(2, "little") + E + bytes(11)), "SOURCE"),
    ("eth_empty", raw(data=b"\0\0\0" + bytes(43)), "FMP_SHORT"),
    ("fmp_empty", e / ip / UDP(sport=5555, dport=2121), "FMP_SHORT"),
    ("fmp_3", e / ip / udp / b"\0\0\0", "FMP_SHORT"),
    ("fmp_31", e / ip / udp / (b"\0\0\xff\xff" + bytes(27)), "FMP_SHORT"),
    ("fmp_version", e / ip / udp / (b"\x10" + E[1:]), "FMP_VERSION"),
    ("fmp_phase", e / ip / udp / (b"\x03" + E[1:]), "FMP_PHASE"),
    ("fmp_length", e / ip / udp / (E60 + b"x"), "FMP_LENGTH"),
    ("fmp_msg1_length", e / ip / udp / fmp(113, 1), "FMP_LENGTH"),
    ("fmp_msg1_flags", e / ip / udp / (b"\x01\x01" + fmp(114, 1)[2:]), "FMP_FLAGS"),
    ("npt_probe", e / ip / udp / bytes.fromhex("4e50544300000007abe633f3a47a2758174eabe9160daf36"), "NPT"),
    ("npt_ack", e / ip6 / udp / bytes.fromhex("4e50544100000007abe633f3a47a2758174eabe9160daf36"), "NPT"),
]
for name, f, v in bad:
    add(name, f, "DROP_" + v)
add("icmp4_7_bytes", e / IP(src=PEER4, dst=US4, proto=1) / Raw(b"\x08\0\0\0\0\0\0"), "DROP_TRUNCATED")
frames[:] = [f for f in frames if f[0] != "icmp4_short"]
add("vlan_missing", e / ip / udp / E60, "DROP_VLAN", vlan=7)
add("vlan_other", e / Dot1Q(vlan=8) / ip / udp / E60, "DROP_VLAN", vlan=7)
add("vlan_stripped_other", e / ip / udp / E60, "DROP_VLAN", hints=0x00080004, vlan=7)
add("vlan_stripped_and_tag", e / Dot1Q(vlan=7) / ip / udp / E60, "DROP_VLAN", hints=0x00070004, vlan=7)
good("hint_l4_good", e / ip / UDP(sport=5555, dport=2121, chksum=0x1234) / E60, hints=2)
good("hint_ip_good", e / IP(src=PEER4, dst=US4, chksum=0x1234) / udp / E60, hints=1)
good("hint_l4_good_ip6", e / ip6 / UDP(sport=5555, dport=2121, chksum=0x1234) / E60, frm="U6", off=62, hints=2)
add("hint_l4_good_ip6_zero", e / ip6 / UDP(sport=5555, dport=2121, chksum=0) / E60, "DROP_UDP_CHECKSUM", hints=2)

with open("frames_scapy.h", "w") as out:
    out.write("/* SPDX-License-Identifier: BSD-3-Clause */\n/* Written by make_frames.py. */\n")
    out.write("static const struct frame_case frame_cases[] = {\n")
    for name, b, verdict, kind, frm, off, ln, hints, vlan in frames:
        out.write('\t{"%s", SL_%s, %s, FROM_%s, %d, %d, 0x%xu, %d,\n' % (
            name, verdict, "SL_PARSE_" + kind if kind else "0", frm or "NONE", off, ln, hints, vlan))
        h = b.hex()
        rows = [h[i:i + 100] for i in range(0, len(h), 100)]
        out.write("\n".join('\t\t"%s"' % r for r in rows) + "},\n")
    out.write("};\n")
# Seeds of fuzz_frame and fuzz_neigh: their choice byte, their record header.
corpus = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../fuzz/corpus")
for folder in ("frame", "neigh"):
    os.makedirs(os.path.join(corpus, folder), exist_ok=True)
for name, b, verdict, kind, frm, off, ln, hints, vlan in frames:
    choice = (vlan == 7) | (hints & 3) << 2 | (hints >> 2 & 1) << 4
    with open(os.path.join(corpus, "frame", name), "wb") as out:
        out.write(bytes([choice]) + b)
    if kind == "NEIGH":
        with open(os.path.join(corpus, "neigh", name), "wb") as out:
            ask = bytes([2, 2, 0, 1 if b[12] == 0x86 else 0, 9]) # hold the peer, then the frame, then time
            out.write(ask + b"\0" + len(b).to_bytes(2, "little") + b + b"\4" + bytes([200, 0]) + bytes(200))
print(len(frames), "frames")
