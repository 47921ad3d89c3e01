# SPDX-License-Identifier: Apache-2.0
"""Sockets of libzmq, driven by lines of JSON.

Each line of standard input is a command, {"do": ..., "socket": ...}. Each is
answered by one line {"answer": true, ...}, with "error" where it failed. What a
socket receives, or its monitor sees, is a line in between. Frames are base64.
"""
import base64
import errno
import json
import os
import sys
import time

import zmq
from zmq.utils.monitor import recv_monitor_message

READS = {"PULL", "SUB", "XSUB", "XPUB", "ROUTER", "DEALER", "REQ", "REP", "PAIR"}
BIND_LIMIT = 60  # seconds in which the address of a former socket becomes free
MOST = 1000  # messages of one socket in a turn

context = zmq.Context()
poller = zmq.Poller()
sockets = {}  # by name
monitors = {}  # the socket's name by the monitor


def say(**line):
    sys.stdout.write(json.dumps(line) + "\n")


def bind(s, address):
    limit = time.monotonic() + BIND_LIMIT
    while True:
        try:
            return s.bind(address)
        except zmq.ZMQError as e:
            if e.errno != errno.EADDRINUSE or time.monotonic() > limit:
                raise
            time.sleep(0.01)


def open_socket(c):
    s = context.socket(getattr(zmq, c["kind"]))
    for name, value in (c.get("set") or {}).items():
        s.setsockopt(getattr(zmq, name), value)
    if c.get("identity"):
        s.setsockopt(zmq.IDENTITY, base64.b64decode(c["identity"]))
    for prefix in c.get("subscribe") or []:
        s.setsockopt(zmq.SUBSCRIBE, prefix.encode())
    m = s.get_monitor_socket()
    monitors[m] = c["socket"]
    poller.register(m, zmq.POLLIN)
    for address in c.get("bind") or []:
        bind(s, address)
    for address in c.get("connect") or []:
        s.connect(address)
    sockets[c["socket"]] = s
    if c["kind"] in READS and not c.get("deaf"):
        poller.register(s, zmq.POLLIN)
    return {"address": s.getsockopt(zmq.LAST_ENDPOINT).rstrip(b"\0").decode()}


def send(c):
    s = sockets[c["socket"]]
    s.setsockopt(zmq.SNDTIMEO, c["limit"])
    frames = [base64.b64decode(f) for f in c["frames"]]
    for _ in range(c.get("times") or 1):
        s.send_multipart(frames)
    return {}


def close(c):
    s = sockets.pop(c["socket"])
    for m in [m for m, name in monitors.items() if name == c["socket"]]:
        del monitors[m]
        poller.unregister(m)
    if s in poller:
        poller.unregister(s)
    s.disable_monitor()
    s.close(linger=c["linger"])
    return {}


def rest(c):
    """Answers when nothing has come for a while."""
    while turn(c["quiet"], sys.stdin.fileno()):
        pass
    return {}


def subscribe(c):
    sockets[c["socket"]].setsockopt(zmq.SUBSCRIBE, c["prefix"].encode())
    return {}


DO = {"open": open_socket, "send": send, "close": close, "rest": rest, "subscribe": subscribe}


def drain(s):
    """Tells what a socket has received, or a monitor seen."""
    for _ in range(MOST):
        try:
            if s in monitors:
                e = recv_monitor_message(s, zmq.NOBLOCK)
                say(socket=monitors[s], event=zmq.Event(e["event"]).name)
            else:
                frames = s.recv_multipart(zmq.NOBLOCK)
                name = next(n for n, other in sockets.items() if other is s)
                say(socket=name, frames=[base64.b64encode(f).decode() for f in frames])
        except zmq.Again:
            return


def turn(limit, but=None):
    """Waits for sockets and drains them; returns what else is ready, or whether
    anything was."""
    ready = [s for s, _ in poller.poll(limit) if s != but]
    for s in ready:
        if isinstance(s, zmq.Socket) and not s.closed:
            drain(s)
    sys.stdout.flush()
    return ready


def main():
    stdin = sys.stdin.fileno()
    poller.register(stdin, zmq.POLLIN)
    left = b""
    while True:
        if stdin not in turn(None):
            continue
        data = os.read(stdin, 1 << 20)
        if not data:
            context.destroy(linger=0)
            return
        *lines, left = (left + data).split(b"\n")
        for line in lines:
            c = json.loads(line)
            try:
                answer = DO[c["do"]](c)
            except Exception as e:  # the test shows it
                answer = {"error": f"{type(e).__name__}: {e}"}
            say(answer=True, **answer)
            sys.stdout.flush()


main()
