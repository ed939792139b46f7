#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What control spends on peers that are met through Nostr, at rest: a real sluiced with N configured peers, `via_nostr` and
behind a NAT, while no Nostr relay and no STUN server answers, against the same with peers that are only known. Its
longest turn, and processor time a second after the first five. No rights and no network are needed."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.join(ROOT, "build-release")
SETTLE = 5

HEAD = """node:
  control: {{socket_path: {dir}/control.sock}}
  limits: {{max_peers: {peers}}}
  rendezvous:
    nostr: {{enabled: true, advert_relays: ["ws://127.0.0.1:9"], dm_relays: ["ws://127.0.0.1:9"], stun_servers: ["stun:192.0.2.7:3478"]}}
transports: {{udp: {{bind_addr: "0.0.0.0:2121", advertise_on_nostr: true}}}}
dataplane:
  idle_sleep_us: 500
  pools: {{mbufs: 4096}}
  memory: {{huge_pages: "no"}}
  ports: [{{name: p0, device: net_null0, addresses: [192.0.2.1/24]}}]
peers:
"""
KINDS = {"via_nostr": "via_nostr: true, addresses: [{transport: udp, addr: nat}]", "known": "connect_policy: manual"}


def show(directory):
    return json.loads(subprocess.run([os.path.join(BUILD, "app", "sluicectl", "sluicectl"), "-s", f"{directory}/control.sock", "-j",
                                      "show", "status"], check=True, capture_output=True, text=True).stdout)


def control_s(pid):
    """CPU seconds of the main thread: control."""
    with open(f"/proc/{pid}/task/{pid}/schedstat", encoding="ascii") as f:
        return int(f.read().split()[0]) / 1e9


def once(kind, npubs, seconds):
    with tempfile.TemporaryDirectory(prefix="sluice-perf-") as directory:
        path = os.path.join(directory, "relay.yaml")
        with open(path, "w", encoding="utf-8") as f:
            f.write(HEAD.format(dir=directory, peers=len(npubs)))
            f.writelines(f"  - {{npub: {npub}, {KINDS[kind]}}}\n" for npub in npubs)
        with open(os.path.join(directory, "log"), "w", encoding="utf-8") as log, \
                subprocess.Popen([os.path.join(BUILD, "app", "sluiced", "sluiced"), "-c", path], stdout=log, stderr=log) as relay:
            try:
                until = time.monotonic() + 20
                while not os.path.exists(f"{directory}/control.sock"):
                    if relay.poll() is not None or time.monotonic() > until:
                        with open(log.name, encoding="utf-8") as text:
                            sys.exit("sluiced does not start: " + text.read()[-500:])
                    time.sleep(0.05)
                time.sleep(SETTLE)
                before = control_s(relay.pid)
                time.sleep(seconds)
                spent = (control_s(relay.pid) - before) / seconds
                status = show(directory)
            finally:
                relay.terminate()
    return {"ms_a_second": spent * 1e3, "longest_turn_cpu_ms": status["longest_turn_cpu_us"] / 1e3}


def main():
    p = argparse.ArgumentParser(prog="tools/run perf via_nostr", description=__doc__)
    p.add_argument("--peers", type=int, default=4096)
    p.add_argument("--seconds", type=float, default=5)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("-j", "--json", action="store_true")
    args = p.parse_args()
    keys = subprocess.run([os.path.join(BUILD, "tests", "endnode", "sl_swarm"), "--nodes", str(args.peers), "--key", "7000000", "--keys"],
                          check=True, capture_output=True, text=True).stdout
    npubs = [line.split()[1] for line in keys.splitlines()]
    rounds = [{kind: once(kind, npubs, args.seconds) for kind in KINDS} for _ in range(args.rounds)]
    result = {kind: {key: round(statistics.median(r[kind][key] for r in rounds), 2) for key in rounds[0][kind]} for kind in KINDS}
    if args.json:
        print(json.dumps({"bench": "via_nostr", "peers": args.peers, "rounds": args.rounds, **result}))
    else:
        for kind, r in result.items():
            print(f"{args.peers} peers, {kind}: {r['ms_a_second']:.1f} ms of control's CPU a second, longest turn "
                  f"{r['longest_turn_cpu_ms']:.1f} ms of CPU")


if __name__ == "__main__":
    main()
