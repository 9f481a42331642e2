# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""For tests of TLS: a certificate, and a tunnel through which clients without TLS reach a server
that accepts nothing else. The tunnel passes a client's end on (close_notify, as a shutdown of one
side), and reads no faster than its client does.
"""

import contextlib
import os
import socket
import ssl
import subprocess
import threading
import time


def make_certificate(folder, name="server", issuer=None):
    """The files of a certificate for localhost and of its key; signed by itself or by `issuer`,
    such a pair."""
    certificate, key = os.path.join(folder, name + ".pem"), os.path.join(folder, name + ".key")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-subj", f"/CN={name}", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
                    *(["-CA", issuer[0], "-CAkey", issuer[1]] if issuer else []), "-keyout", key, "-out", certificate],
                   check=True, capture_output=True)
    return certificate, key


def client_context(certificate):
    context = ssl.create_default_context(cafile=certificate)
    context.check_hostname = True
    return context


class _Connection:
    """One plain client's connection to the server."""

    def __init__(self, client, server, context):
        self.client, self.server = client, server
        self.received, self.to_send = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.received, self.to_send, server_hostname="localhost")
        self.lock = threading.Lock()  # of what is above; nobody waits for a socket under it

    def run(self):
        with self.client, self.server, contextlib.suppress(OSError, ssl.SSLError):
            self.shake_hands()
            sender = threading.Thread(target=self._send, daemon=True)
            sender.start()
            self._receive()
            with contextlib.suppress(OSError):
                self.client.shutdown(socket.SHUT_RDWR)  # ends the sender, too
            sender.join()

    def shake_hands(self):
        while True:
            try:
                self.tls.do_handshake()
                self.server.sendall(self.to_send.read())
                return
            except ssl.SSLWantReadError:
                self.server.sendall(self.to_send.read())
                piece = self.server.recv(1 << 16)
                if not piece:
                    raise OSError("no handshake") from None
                self.received.write(piece)

    def _send(self):
        with contextlib.suppress(OSError, ssl.SSLError):
            while piece := self._said():
                self.server.sendall(self.seal(piece))
            self.server.sendall(self.seal_end())

    def _said(self):
        try:
            return self.client.recv(1 << 16)
        except OSError:  # reset: no client reads any more, and the server has to notice, whether it says more or not
            self.server.shutdown(socket.SHUT_RDWR)
            raise

    def seal(self, piece):
        with self.lock:
            self.tls.write(piece)
            return self.to_send.read()

    def seal_end(self):
        """Sends the end of this side."""
        with self.lock:
            with contextlib.suppress(ssl.SSLError):
                self.tls.unwrap()  # that the other side has more to say is no error
            return self.to_send.read()

    def _receive(self):
        while piece := self.server.recv(1 << 16):
            opened = b""
            with self.lock:
                self.received.write(piece)
                try:
                    while more := self.tls.read(1 << 16):
                        opened += more
                    ended = True
                except ssl.SSLWantReadError:
                    ended = False
                except ssl.SSLZeroReturnError:
                    ended = True
            self.client.sendall(opened)
            if ended:
                return


def bytes_answered(address, context, request, pause_s):
    """How many bytes a server answers to a client that sends a request and its end at once, and
    reads later."""
    with socket.create_connection(address, timeout=60) as server:
        client = _Connection(None, server, context)
        client.shake_hands()
        server.sendall(client.seal(request) + client.seal_end())
        time.sleep(pause_s)
        count = 0
        while piece := server.recv(1 << 20):
            client.received.write(piece)
            with contextlib.suppress(ssl.SSLWantReadError, ssl.SSLZeroReturnError):
                while opened := client.tls.read(1 << 20):
                    count += len(opened)
        return count


class Tunnel:
    """`address` is plain; what connects to it is connected to `to` by TLS."""

    def __init__(self, to, context):
        self.to, self.context = to, context
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.address = self.listener.getsockname()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client = self.listener.accept()[0]
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        try:
            server = socket.create_connection(self.to)
        except OSError:
            client.close()
            return
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        _Connection(client, server, self.context).run()

    def close(self):
        self.listener.close()
