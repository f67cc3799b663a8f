#!/usr/bin/env python3
"""hosts_relay.py NETNS LISTEN=TARGET…     gives addresses of a closed network namespace loopback addresses on this machine.

For example: hosts_relay.py /run/netns/x 127.77.1.11:22=10.77.1.11:22. A socket stays in the namespace where it was made: this listens
outside, enters NETNS, and dials from there. A target that refuses, resets or does not answer looks the same to the caller, as far as that
is possible after its connection was accepted: it is reset. Python 3.11, no packages.
"""

from __future__ import annotations

import asyncio
import ctypes
import socket
import sys

_NEW_NETWORK = 0x40000000  # CLONE_NEWNET of setns(2)


def listener(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind((host, int(port)))
    sock.listen(128)
    return sock


def enter(namespace: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    with open(namespace, "rb") as opened:
        if libc.setns(opened.fileno(), _NEW_NETWORK):
            raise OSError(ctypes.get_errno(), f"cannot enter {namespace}")


def prompt(writer: asyncio.StreamWriter) -> None:
    writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while chunk := await source.read(65536):
        sink.write(chunk)
        await sink.drain()
    sink.write_eof()


async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: str) -> None:
    host, _, port = target.rpartition(":")
    ends = [writer]
    try:
        prompt(writer)
        there, out = await asyncio.open_connection(host, int(port))
        ends.append(out)
        prompt(out)
        async with asyncio.TaskGroup() as both:
            both.create_task(pump(reader, out))
            both.create_task(pump(there, writer))
        for end in ends:
            end.close()
    except (OSError, ExceptionGroup):
        for end in ends:
            end.transport.abort()


async def main(namespace: str, pairs: list[str]) -> None:
    listeners = [(listener(listen), target) for listen, _, target in (pair.partition("=") for pair in pairs)]
    enter(namespace)
    for sock, target in listeners:
        await asyncio.start_server(lambda r, w, target=target: relay(r, w, target), sock=sock)
    await asyncio.Event().wait()


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    asyncio.run(main(sys.argv[1], sys.argv[2:]))
