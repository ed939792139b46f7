# SPDX-License-Identifier: BSD-3-Clause
"""Relays for the tests: a real one (nostr-relay, from PyPI) and the misbehaving one; certificates for TLS.

The real one lives in a virtual environment in the tree's .cache, made at the first run from requirements.txt. When the registry
cannot be reached and there is none yet, unavailable() says why.
"""
import hashlib
import json
import os
import socket
import ssl
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
REQUIREMENTS = os.path.join(HERE, "requirements.txt")


def venv():
    """The folder of the real relay's environment, named by its requirements and by the Python that it is for."""
    with open(REQUIREMENTS, "rb") as f:
        tag = hashlib.sha256(f.read() + sys.version.encode()).hexdigest()[:12]
    base = os.environ.get("SLUICE_NOSTR_VENV") or os.path.join(ROOT, ".cache", f"nostr-relay-{tag}")
    return base


def unavailable():
    """None when the real relay can be run, else why not. Makes its environment."""
    base = venv()
    program = os.path.join(base, "bin", "nostr-relay")
    if os.path.exists(os.path.join(base, "ready")) and os.path.exists(program):
        return None
    python = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
    print(f"# making {os.path.relpath(base, ROOT)}", flush=True)
    for command in ([python, "-m", "venv", "--clear", base],
                    [os.path.join(base, "bin", "pip"), "install", "--quiet", "--disable-pip-version-check", "--only-binary",
                     ":all:", "-r", REQUIREMENTS]):
        r = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                           check=False)
        if r.returncode:
            return f"{os.path.basename(command[0])}: {r.stdout.strip()[-160:]}".replace("\n", " ")
    with open(os.path.join(base, "ready"), "w", encoding="ascii"):
        pass
    return None


def free_port(bind="127.0.0.1"):
    with socket.socket() as s:
        s.bind((bind, 0))
        return s.getsockname()[1]


def certificate(folder, names="DNS:localhost,IP:127.0.0.1"):
    """A certificate that is its own authority: (cert, key)."""
    cert, key = os.path.join(folder, "relay.pem"), os.path.join(folder, "relay.key")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
                    key, "-out", cert, "-days", "2", "-subj", "/CN=relay", "-addext", f"subjectAltName={names}"],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return cert, key


class Real:
    """nostr-relay by uvicorn, with a database of its own. prefix: put before the command (ip netns exec ...)."""

    def __init__(self, folder, name, cert=None, key=None, bind="127.0.0.1", port=None, prefix=()):
        self.name, self.folder, self.bind = name, folder, bind
        self.port = port or free_port()
        self.tls = cert is not None
        self.prefix = list(prefix)
        self.log = os.path.join(folder, name + ".log")
        self.config = os.path.join(folder, name + ".yaml")
        listen = {"bind": f"{bind}:{self.port}", "host": bind, "loglevel": "warning"}
        if cert:
            listen.update(ssl_certfile=cert, ssl_keyfile=key)
        with open(self.config, "w", encoding="ascii") as f:
            json.dump({"storage": {"sqlalchemy.url": f"sqlite+aiosqlite:///{folder}/{name}.sqlite3",
                                   "validators": ["nostr_relay.validators.is_signed"]},
                       "verification": {"nip05_verification": "disabled"}, "gunicorn": listen,
                       "authentication": {"enabled": False}, "message_timeout": 1800, "subscription_limit": 64}, f)
        self.process = None

    @property
    def url(self):
        return f"{'wss' if self.tls else 'ws'}://{self.bind}:{self.port}"

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                self.prefix + [os.path.join(venv(), "bin", "nostr-relay"), "-c", self.config, "serve", "--use-uvicorn"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def wait(self, seconds=60):
        """Until it takes connections (from within its namespace when it has one)."""
        code = ("import socket,sys;s=socket.create_connection((sys.argv[1],int(sys.argv[2])),1);s.close()")
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.process.poll() is not None:
                break
            if subprocess.run(self.prefix + [sys.executable, "-c", code, self.bind, str(self.port)], check=False,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0:
                return
            time.sleep(0.1)
        with open(self.log, encoding="utf-8", errors="replace") as f:
            raise RuntimeError(f"{self.name} does not start: {f.read()[-400:]}")

    def stop(self):
        if self.process:
            self.process.terminate()
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process = None


class Hostile:
    def __init__(self, folder, cert=None, key=None, bind="127.0.0.1", port=0, prefix=()):
        self.folder, self.bind, self.tls = folder, bind, cert is not None
        self.command = list(prefix) + [sys.executable, os.path.join(HERE, "hostile.py"), folder, "--bind", bind, "--port", str(port)]
        if cert:
            self.command += ["--cert", cert, "--key", key]
        self.process = None
        self.port = port

    def start(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline().split()[1])

    def url(self, way):
        return f"{'wss' if self.tls else 'ws'}://{self.bind}:{self.port}/{way}"

    def stop(self):
        """Its counts."""
        if not self.process:
            return {}
        self.process.terminate()
        text = self.process.communicate(timeout=10)[0]
        self.process = None
        return json.loads(text.strip().splitlines()[-1])


def tls_refuses(port):
    """Does a client with the system's authorities refuse the relay at this port? (A check of the test's own set-up.)"""
    try:
        with socket.create_connection(("127.0.0.1", port), 5) as s, \
                ssl.create_default_context().wrap_socket(s, server_hostname="localhost"):
            return False
    except ssl.SSLError:
        return True
