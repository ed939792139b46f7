#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A relay that misbehaves, each way under a path of its own: ws://127.0.0.1:PORT/WAY. Standard library only.

    drop        the connection ends as soon as it is there
    drop-req    ... at the first request
    deaf        takes the TCP connection, never answers the upgrade
    half-open   upgrades, then neither reads nor writes (no pong either)
    closed      CLOSED for every request
    no-eose     keeps requests open and says nothing
    giant       messages of 1 MiB
    deep        JSON nested 30,000 deep
    values      a message of 60,000 commas
    binary      binary frames of noise
    bad-id, bad-sig, old, future, other   events of that kind (from the files), and EOSE
    dup         one true event, ever again, as fast as it is read
    flood       EVENTS_S different true events a second
    endless     one message whose fragments never end, as fast as they are read
    pings       pings without content, as fast as they are read
    pongs       pongs without content, the same
    fragments   one message in fragments of one byte, the same
    nul         events whose content has a \\u0000, which NIP-01 allows
    flood-other the same of an author that nobody asked about
    good        what the file `good` holds, live ones too (a line appended to it is sent on)
    drop-good   good, but each connection lives 20 ms after its first request

Events come from files FOLDER/NAME.jsonl, one a line. Prints "ready PORT" and then counts at the end (SIGTERM): one JSON object.
"""
import argparse
import asyncio
import base64
import hashlib
import json
import os
import signal
import ssl
import struct

EVENTS_S = 10000
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
counts = {}


def count(way, what, n=1):
    key = f"{way}.{what}"
    counts[key] = counts.get(key, 0) + n


def frame(payload, opcode=1):
    n = len(payload)
    if n < 126:
        return struct.pack("!BB", 0x80 | opcode, n) + payload
    if n < 65536:
        return struct.pack("!BBH", 0x80 | opcode, 126, n) + payload
    return struct.pack("!BBQ", 0x80 | opcode, 127, n) + payload


async def read_frame(reader):
    b0, b1 = await reader.readexactly(2)
    n = b1 & 0x7f
    if n == 126:
        n = struct.unpack("!H", await reader.readexactly(2))[0]
    elif n == 127:
        n = struct.unpack("!Q", await reader.readexactly(8))[0]
    mask = await reader.readexactly(4) if b1 & 0x80 else b"\0\0\0\0"
    data = await reader.readexactly(n)
    return b0 & 0x0f, bytes(c ^ mask[i % 4] for i, c in enumerate(data))


async def upgrade(reader, writer):
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    path = lines[0].split()[1].decode().strip("/")
    key = [line.split(b":", 1)[1].strip() for line in lines if line.lower().startswith(b"sec-websocket-key:")][0]
    accept = base64.b64encode(hashlib.sha1(key + GUID).digest())
    if path == "deaf":
        await asyncio.sleep(3600)
    writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                 b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n")
    await writer.drain()
    return path


class Relay:
    def __init__(self, folder):
        self.folder = folder

    def events(self, name):
        try:
            with open(os.path.join(self.folder, name + ".jsonl"), encoding="ascii") as f:
                return [line.strip() for line in f if line.strip()]
        except FileNotFoundError:
            return []

    async def say(self, writer, way, text):
        writer.write(frame(text.encode()))
        count(way, "sent")
        await writer.drain()

    async def good(self, writer, way, sub):
        sent = 0
        while True:
            events = self.events("good")
            for e in events[sent:]:
                await self.say(writer, way, f'["EVENT","{sub}",{e}]')
            if not sent:
                await self.say(writer, way, f'["EOSE","{sub}"]')
            sent = max(sent, len(events)) or 1
            await asyncio.sleep(0.05)

    async def flood(self, writer, way, sub, events):
        """EVENTS_S a second as long as they are read; drain() holds us up when they are not."""
        start, sent = asyncio.get_running_loop().time(), 0
        while True:
            await self.say(writer, way, f'["EVENT","{sub}",{events[sent % len(events)]}]')
            sent += 1
            ahead = sent / EVENTS_S - (asyncio.get_running_loop().time() - start)
            if ahead > 0.01:
                await asyncio.sleep(ahead)

    async def on_req(self, writer, way, sub, tasks):
        if way == "drop-req":
            raise ConnectionResetError
        if way == "closed":
            await self.say(writer, way, f'["CLOSED","{sub}","blocked: not here"]')
        elif way == "giant":
            while True:
                await self.say(writer, way, '["NOTICE","' + "x" * (1 << 20) + '"]')
        elif way == "deep":
            while True:
                await self.say(writer, way, "[" * 30000)
        elif way == "values":
            while True:
                await self.say(writer, way, "[" + "1," * 30000 + "1]")
        elif way == "endless":
            writer.write(b"\x01\x01[")
            while True:
                writer.write(b"\x00\x7f" + struct.pack("!Q", 60000) + b"x" * 60000)
                await writer.drain()
        elif way in ("pings", "pongs"):
            while True:
                writer.write((b"\x89\x00" if way == "pings" else b"\x8a\x00") * 20000)
                await writer.drain()
        elif way == "fragments":
            writer.write(b"\x01\x01[")
            while True:
                writer.write(b"\x00\x01 " * 20000)
                await writer.drain()
        elif way == "nul":
            for i in range(100):
                await self.say(writer, way, f'["EVENT","{sub}",{{"id":"{i:064x}","pubkey":"{i:064x}","created_at":1,"kind":37195,'
                                            f'"tags":[],"content":"\\u0000","sig":"{i:0128x}"}}]')
            await self.say(writer, way, f'["EOSE","{sub}"]')
        elif way == "binary":
            while True:
                writer.write(frame(os.urandom(1000), 2))
                await writer.drain()
        elif way in ("bad-id", "bad-sig", "old", "future", "other"):
            for e in self.events(way):
                await self.say(writer, way, f'["EVENT","{sub}",{e}]')
            await self.say(writer, way, f'["EOSE","{sub}"]')
        elif way in ("dup", "flood", "flood-other"):
            events = self.events({"dup": "good", "flood": "flood", "flood-other": "other"}[way])
            tasks.append(asyncio.create_task(self.flood(writer, way, sub, events)))
        elif way in ("good", "drop-good"):
            tasks.append(asyncio.create_task(self.good(writer, way, sub)))

    async def serve(self, reader, writer):
        tasks, way = [], "?"
        try:
            way = await upgrade(reader, writer)
            count(way, "connections")
            if way == "drop":
                return
            if way == "half-open":
                writer.transport.pause_reading()
                await asyncio.sleep(3600)
            while True:
                if way == "drop-good" and tasks:
                    await asyncio.sleep(0.02)
                    return
                opcode, data = await read_frame(reader)
                if opcode == 8:
                    return
                if opcode == 9:
                    writer.write(frame(data, 10))
                elif opcode == 1:
                    m = json.loads(data)
                    count(way, m[0])
                    if m[0] == "REQ":
                        await self.on_req(writer, way, m[1], tasks)
                    elif m[0] == "EVENT" and way in ("good", "drop-good"):
                        await self.say(writer, way, f'["OK","{m[1]["id"]}",true,""]')
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError, asyncio.LimitOverrunError):
            pass
        finally:
            for t in tasks:
                t.cancel()
            count(way, "ended")
            writer.transport.abort()


async def main():
    p = argparse.ArgumentParser()
    p.add_argument("folder")
    p.add_argument("--port", type=int, default=0)
    p.add_argument("--bind", default="127.0.0.1")
    p.add_argument("--cert")
    p.add_argument("--key")
    a = p.parse_args()
    tls = None
    if a.cert:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(a.cert, a.key)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    server = await asyncio.start_server(Relay(a.folder).serve, a.bind, a.port, ssl=tls)
    print("ready", server.sockets[0].getsockname()[1], flush=True)
    await stop.wait()
    server.close()
    print(json.dumps(counts), flush=True)
    os._exit(0)


asyncio.run(main())
