# SPDX-License-Identifier: BSD-3-Clause
"""The stage of the demo and of the smoke tests: three network namespaces, end node - relay - end node.

    sl-a-ID  eth0 --veth-- eth-a  sl-r-ID  eth-b --veth-- eth0  sl-b-ID

The relay's ends carry no kernel address: sluiced drives them through af_packet and answers for its own addresses.
Everything goes away when the Lab is closed: processes first, then namespaces, then files. Closing happens on any exit that
Python gets to see; install() turns signals into one.
"""
import atexit
import collections
import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

# Identities of published test vectors (link layer facts, 2.4): secret, npub, node address.
NODES = {
    "a": ("0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20",
          "npub1sjlh2c3x9w7kjsqg2ay080n2lff2uvt325vpan33ke34rn8l5jcqawh57m", "69e08d65cc3a6b9c2c2ac4bd405e4b0e"),
    "b": ("b102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1fb0",
          "npub1tdwa4vjrjl33pcjdpf2t4p027nl86xrx24g4d3avg4vwvayr3g8qhd84le", "8e302c287eb48d6268122fda760b7727"),
    "r": ("42" * 32,
          "npub1y3jnatzrgjyqqtxqdwlm0ug0uxyerc6lnljrqtd75mfr20wq4vwqskmn49", "53d2280d23b40240f82bcf5482961129"),
    "s": ("0" * 63 + "1",
          "npub10xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqpkge6d", "132f39a98c31baaddba6525f5d43f295"),
}
# Documentation addresses; they live in the namespaces only.
ADDR = {4: {"a": "192.0.2.1", "b": "198.51.100.1"}, 6: {"a": "2001:db8:a::1", "b": "2001:db8:b::1"}}
RELAY = {4: {"a": "192.0.2.2", "b": "198.51.100.2"}, 6: {"a": "2001:db8:a::2", "b": "2001:db8:b::2"}}
PREFIX = {4: 24, 6: 64}
OFFLOADS = ["tx", "off", "tso", "off", "gso", "off", "gro", "off"]


class LabError(Exception):
    pass


def endpoint(addr, port=2121):
    return f"[{addr}]:{port}" if ":" in addr else f"{addr}:{port}"


def sh(*args, check=True):
    r = subprocess.run(args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                       check=False)
    if check and r.returncode:
        raise LabError(f"{' '.join(args)}: {r.stdout.strip() or r.returncode}")
    return r.stdout


LIBC = ctypes.CDLL(None)


def in_child(nice):
    """Between fork and exec: SIGTERM comes when we are gone, however we went; `nice` counts against other sessions too.

    Where the kernel groups processes by session (autogroup), a nice value only orders those of one session."""
    LIBC.prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG
    if nice < 0 and os.geteuid() == 0:
        try:
            os.setsid()
            with open("/proc/self/autogroup", "w", encoding="ascii") as f:
                f.write(str(nice))
        except OSError:
            pass


def sweep():
    """Takes away namespaces of labs whose program was killed before it could."""
    for line in sh("ip", "netns", "list", check=False).splitlines():
        m = re.match(r"sl-[arb]-([0-9a-f]+)\b", line)
        if m and not os.path.exists(f"/proc/{int(m.group(1), 16)}"):
            sh("ip", "netns", "del", m.group(0), check=False)


def install():
    """Ends the program, and so the lab, in good order on the usual signals."""
    def on_signal(sig, _frame):
        sys.exit(128 + sig)
    for sig in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(sig, on_signal)


def cpus():
    """(worker's, everyone else's) of the CPUs that we may use."""
    mine = sorted(os.sched_getaffinity(0))
    if len(mine) == 1:
        return mine[0], mine
    return mine[1], [c for c in mine if c != mine[1]]


class Process:
    """A program in a namespace; its lines of JSON are collected as they come, the rest goes to a log file."""

    def __init__(self, lab, name, ns, args, nice=0, on=None):
        self.name, self.lines, self.log_path = name, collections.deque(maxlen=4096), lab.path(name + ".log")
        self.final = None
        cmd = ["ip", "netns", "exec", ns]
        if on:
            cmd += ["taskset", "-c", ",".join(map(str, on))]
        if nice and os.geteuid() == 0:
            cmd += ["nice", "-n", str(nice)]
        with open(self.log_path, "ab") as log:
            self.child = subprocess.Popen(cmd + args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log,
                                          text=True, errors="replace", preexec_fn=lambda: in_child(nice))
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        with open(self.log_path, "a", encoding="utf-8") as log:
            for line in self.child.stdout:
                if line.startswith("{"):
                    try:
                        obj = json.loads(line)
                    except ValueError:
                        continue
                    obj["at"] = time.monotonic()
                    self.lines.append(obj)
                    if obj.get("final"):
                        self.final = obj
                else:
                    log.write(line)

    def last(self):
        return self.lines[-1] if self.lines else None

    def alive(self):
        return self.child.poll() is None

    def log(self, lines=20):
        try:
            with open(self.log_path, encoding="utf-8", errors="replace") as f:
                return f.read().splitlines()[-lines:]
        except OSError:
            return []

    def stop(self, sig=signal.SIGTERM, wait=5.0):
        """Returns the seconds it took, None when it had to be killed."""
        start = time.monotonic()
        if self.alive():
            self.child.send_signal(sig)
        try:
            self.child.wait(wait)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
            return None
        finally:
            self.reader.join(2)
        return time.monotonic() - start


class Lab:
    def __init__(self, build, mtu=1500):
        self.id = f"{os.getpid():x}"
        self.build, self.mtu = build, mtu
        self.dir = tempfile.mkdtemp(prefix="sluice-")
        self.processes = []
        self.worker_cpu, self.other_cpus = cpus()
        self._closed = False
        atexit.register(self.close)
        try:
            sweep()
            self._namespaces()
        except BaseException:
            self.close()
            raise

    def _namespaces(self):
        for n in "arb":
            sh("ip", "netns", "add", self.ns(n))
            sh("ip", "-n", self.ns(n), "link", "set", "lo", "up")
            # No router solicitations and the like among the counted frames.
            for what in ("all", "default"):
                sh("ip", "netns", "exec", self.ns(n), "sysctl", "-qw", f"net.ipv6.conf.{what}.accept_ra=0",
                   f"net.ipv6.conf.{what}.router_solicitations=0", check=False)
        sh("ip", "netns", "exec", self.ns("r"), "sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1", check=False)
        for n in "ab":
            self.veth(n)

    def veth(self, n):
        """The wire between an end node and the relay, with the end node's addresses."""
        near, far = f"sl{n}{self.id}n", f"sl{n}{self.id}f"
        sh("ip", "link", "add", near, "mtu", str(self.mtu), "type", "veth", "peer", "name", far, "mtu", str(self.mtu))
        sh("ip", "link", "set", near, "netns", self.ns(n), "name", "eth0")
        sh("ip", "link", "set", far, "netns", self.ns("r"), "name", f"eth-{n}")
        for ns, dev in ((n, "eth0"), ("r", f"eth-{n}")):
            # The far end sees frames as they stand in memory: checksums must be real and nothing merged.
            sh("ip", "netns", "exec", self.ns(ns), "ethtool", "-K", dev, *OFFLOADS)
            sh("ip", "-n", self.ns(ns), "link", "set", dev, "up")
        for family, prefix in PREFIX.items():
            sh("ip", "-n", self.ns(n), "addr", "add", f"{ADDR[family][n]}/{prefix}", "dev", "eth0",
               *(["nodad"] if family == 6 else []))

    def ns(self, n):
        return f"sl-{n}-{self.id}"

    def path(self, name):
        return os.path.join(self.dir, name)

    def program(self, *parts):
        path = os.path.join(self.build, *parts)
        if not os.access(path, os.X_OK):
            raise LabError(f"{path} is not built")
        return path

    def start(self, name, n, args, **kw):
        p = Process(self, name, self.ns(n), args, **kw)
        self.processes.append(p)
        return p

    def run(self, n, *args, timeout=60):
        return subprocess.run(["ip", "netns", "exec", self.ns(n), *args], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=timeout, check=False)

    def close(self):
        if self._closed:
            return
        self._closed = True
        for p in reversed(self.processes):
            if p.alive():
                p.child.terminate()
        for p in reversed(self.processes):
            p.stop()
        for n in "arb":
            subprocess.run(["ip", "netns", "del", self.ns(n)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, check=False)
        shutil.rmtree(self.dir, ignore_errors=True)
        atexit.unregister(self.close)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # --- the relay -------------------------------------------------------------------------------------------------

    def relay_config(self, family=4, dials="", udp_mtu=1280, extra_node="", extra_dataplane="", frames=4096, extra_ports="",
                     ipv6=False, second=None):
        """second: by node, another address it is dialled at."""
        def address(text):
            return f"      - transport: udp\n        addr: \"{text}\"\n"
        peers = "".join(f"""
  - npub: "{NODES[n][1]}"
    alias: node-{n}
    addresses:
""" + address(endpoint(ADDR[family][n])) + (address(second[n]) if second and n in second else "") for n in dials)
        ports = "".join(f"""
    - name: port-{n}
      device: "net_af_packet{i},iface=eth-{n},qdisc_bypass=1,blocksz=65536,framesz=2048,framecnt={frames}"
      mtu: {self.mtu}
      addresses: ["{RELAY[4][n]}/24", "{RELAY[6][n]}/64"]
""" for i, n in enumerate("ab")) + extra_ports
        sleep = "  idle_sleep_us: 50\n" if self.other_cpus == [self.worker_cpu] else ""
        text = f"""# made for one run
node:
  identity:
    nsec: "{NODES['r'][0]}"
  control:
    socket_path: "{self.path('control.sock')}"
{extra_node}transports:
  udp:
    bind_addr: "{'0.0.0.0' if family == 4 and not ipv6 else '[::]'}:2121"
    mtu: {udp_mtu}
peers:{peers or ' []'}
dataplane:
  lcores:
    control: {self.other_cpus[0]}
    workers: [{self.worker_cpu}]
{sleep}{extra_dataplane}  ports:{ports}"""
        with open(self.path("relay.yaml"), "w", encoding="utf-8") as f:
            f.write(text)
        return self.path("relay.yaml")

    def relay(self, name="sluiced", nice=-5, **kw):
        return self.relay_of(self.relay_config(**kw), name, nice)

    def relay_of(self, config, name, nice=-5):
        return self.start(name, "r", [self.program("app", "sluiced", "sluiced"), "-c", config], nice=nice)

    def two_relays(self):
        """Configurations of two relays, one a port to each node, joined by raw Ethernet: the first hears, the other is heard.

        sl-a --UDP-- relay 1 --mid1/mid2, EtherType 0x2121-- relay 2 --UDP-- sl-b
        """
        sh("ip", "-n", self.ns("r"), "link", "add", "mid1", "mtu", str(self.mtu), "type", "veth", "peer", "name", "mid2",
           "mtu", str(self.mtu))
        for dev in ("mid1", "mid2"):
            sh("ip", "netns", "exec", self.ns("r"), "ethtool", "-K", dev, *OFFLOADS)
            sh("ip", "-n", self.ns("r"), "link", "set", dev, "up")
        configs = []
        for i, (n, who, ethernet) in enumerate((("a", "r", "auto_connect: true"), ("b", "s", "announce: true")), 1):
            path = self.path(f"relay{i}.yaml")
            with open(path, "w", encoding="utf-8") as f:
                f.write(f"""node:
  identity:
    nsec: "{NODES[who][0]}"
  control:
    socket_path: "{self.path(f'control{i}.sock')}"
transports:
  udp:
    bind_addr: "0.0.0.0:2121"
  ethernet:
    interface: mid
    {ethernet}
    accept_connections: true
    beacon_interval_secs: 10
peers: []
dataplane:
  idle_sleep_us: 50
  lcores:
    control: {self.other_cpus[0]}
    workers: [{self.worker_cpu}]
  ports:
    - name: mid
      device: "net_af_packet0,iface=mid{i},qdisc_bypass=1,blocksz=65536,framesz=2048,framecnt=2048"
    - name: node
      device: "net_af_packet1,iface=eth-{n},qdisc_bypass=1,blocksz=65536,framesz=2048,framecnt=2048"
      addresses: ["{RELAY[4][n]}/24"]
""")
            configs.append(path)
        return configs

    def show(self, what, socket="control.sock"):
        """A page of sluicectl as an object, None while it does not answer."""
        try:
            r = subprocess.run(["ip", "netns", "exec", self.ns("r"), self.program("app", "sluicectl", "sluicectl"), "-s",
                                self.path(socket), "-j", "show", what], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=5, check=False)
            return json.loads(r.stdout)
        except (ValueError, subprocess.TimeoutExpired):
            return None

    # --- end nodes -------------------------------------------------------------------------------------------------

    def end_node(self, n, family=4, dials=True, seconds=10, rate=1000, size=256, udp_mtu=1280, dead_ms=30000,
                 name=None, every_ms=1000, relay="r", far=False, extra=(), nice=-5, on=None):
        other = "b" if n == "a" else "a"
        relay = NODES[relay][1] + (f"@{endpoint(RELAY[family][n])}" if dials else "")
        return self.start(name or f"node-{n}", n, [
            self.program("tests", "endnode", "sl_endnode"), "--secret", NODES[n][0], "--bind",
            endpoint(ADDR[family][n]), "--peer", relay, "--partner", NODES[other][1], "--rate", str(rate), "--size",
            str(size), "--seconds", str(seconds), "--mtu", str(udp_mtu), "--dead-ms", str(dead_ms),
            "--every-ms", str(every_ms), *(["--far"] if far else []), *map(str, extra)],
            nice=nice, on=on or self.other_cpus)


def wait_for(fn, timeout, every=0.05):
    """Polls until fn() is true; the seconds it took, or None."""
    start = time.monotonic()
    while True:
        if fn():
            return time.monotonic() - start
        if time.monotonic() - start > timeout:
            return None
        time.sleep(every)
