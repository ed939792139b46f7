#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Control under a flood of multicast DNS: a real sluiced that listens for its neighbours, and a stranger on its link who sends
answers of invented nodes, questions and noise as fast as a socket takes them. Its longest turn before the flood and after it, and the
processor time that control spends in it. Root."""
import argparse
import json
import os
import statistics
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(ROOT, "tools", "lib"), os.path.join(ROOT, "tests", "lan")]
import lab  # noqa: E402
import lan_test  # noqa: E402

NODES = 2000
SENDER = """import random, socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton('192.0.2.1'))
s.bind(('192.0.2.1', 5353))
messages = [bytes.fromhex(line) for line in open(sys.argv[1])]
messages += [random.randbytes(random.randrange(1400)) for _ in range(len(messages) // 2)]
until, sent = time.monotonic() + float(sys.argv[2]), 0
while time.monotonic() < until:
    for m in messages:
        s.sendto(m, ('%s', 5353))
    sent += len(messages)
print(sent)
"""


def control_s(pid):
    with open(f"/proc/{pid}/task/{pid}/schedstat", encoding="ascii") as f:
        return int(f.read().split()[0]) / 1e9


def pid_of(path):
    for p in os.listdir("/proc"):
        try:
            if p.isdigit() and os.readlink(f"/proc/{p}/exe").endswith("/sluiced"):
                with open(f"/proc/{p}/cmdline", "rb") as f:
                    if path.encode() in f.read():
                        return int(p)
        except OSError:
            continue
    raise lab.LabError("sluiced's process is not to be found")


def once(seconds, invented):
    with lab.Lab(os.path.join(ROOT, "build-release")) as stage:
        relay = lan_test.ours(stage, "r", "r", "eth-a", "192.0.2.2")
        if lab.wait_for(lambda: lan_test.show(stage, "r", "status"), 20) is None:
            raise lab.LabError("sluiced did not start: " + " | ".join(relay.log(5)))
        path = stage.path("messages")
        with open(path, "w", encoding="ascii") as f:
            f.writelines(m.hex() + "\n" for m in invented)
        pid = pid_of(stage.path(""))
        time.sleep(2)
        before, status, cpu = lan_test.counters(stage, "r"), lan_test.show(stage, "r", "status"), control_s(pid)
        sent = int(lab.sh("ip", "netns", "exec", stage.ns("a"), sys.executable, "-c", SENDER % lan_test.GROUP, path, str(seconds)))
        cpu = control_s(pid) - cpu
        time.sleep(0.5)
        after, then = lan_test.counters(stage, "r"), lan_test.show(stage, "r", "status")
        return {"sent_a_second": sent / seconds, "not_looked_at": after["mdns_limited"] - before["mdns_limited"],
                "dials": after["found_dialled"] - before["found_dialled"], "control_core": cpu / seconds,
                "longest_turn_before_us": status["longest_turn_cpu_us"], "longest_turn_us": then["longest_turn_cpu_us"]}


def main():
    p = argparse.ArgumentParser(prog="tools/run perf mdns", description=__doc__)
    p.add_argument("--seconds", type=float, default=5)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("-j", "--json", action="store_true")
    args = p.parse_args()
    if os.geteuid():
        sys.exit("perf mdns: needs root (network namespaces)")
    lab.install()
    invented = [lan_test.response(k, f"192.0.2.{20 + i % 200}") for i, k in enumerate(lan_test.keys(NODES))]
    rounds = [once(args.seconds, invented) for _ in range(args.rounds)]
    result = {k: round(statistics.median(r[k] for r in rounds), 3) for k in rounds[0]}
    result["longest_turn_most_us"] = max(r["longest_turn_us"] for r in rounds)
    if args.json:
        print(json.dumps({"bench": "mdns", "seconds": args.seconds, "rounds": args.rounds, **result}))
    else:
        print(f"{result['sent_a_second']:,.0f} messages a second for {args.seconds:g} s: {result['not_looked_at']:,.0f} not looked at, "
              f"{result['dials']:.0f} dials; control {100 * result['control_core']:.1f}% of a core, its longest turn "
              f"{result['longest_turn_us'] / 1e3:.2f} ms of CPU ({result['longest_turn_before_us'] / 1e3:.2f} before; at most "
              f"{result['longest_turn_most_us'] / 1e3:.2f} in {args.rounds} rounds)")


if __name__ == "__main__":
    main()
