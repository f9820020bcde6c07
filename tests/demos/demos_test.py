#!/usr/bin/env python3
"""Uses a demo as its users do: starts it on a free port, talks to it over TCP, stops it with a signal.

Usage: demos_test.py echo|http|chat PROGRAM
"""

import json
import os
import pathlib
import re
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

PATIENCE = 20  # seconds for anything that should come soon


class Demo:
    """A running demo."""

    def __init__(self, program, *args, **how):
        self.process = subprocess.Popen(
            [program, "--port", "0", "--procs", "2", *args], stdout=subprocess.PIPE, text=True, **how
        )
        line = self.process.stdout.readline()
        match = re.search(r"listening on 127\.0\.0\.1:(\d+)$", line.strip())
        assert match, f"no address in {line!r}"
        self.port = int(match[1])

    def connect(self):
        s = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return s

    def stop(self, signum=signal.SIGINT):
        """Sends the signal; the demo must end with exit code 0. Returns how long that took."""
        began = time.monotonic()
        self.process.send_signal(signum)
        code = self.process.wait(PATIENCE)
        assert code == 0, f"exit code {code}"
        return time.monotonic() - began

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if self.process.poll() is None:
            if kind is None:
                self.stop()
            else:
                self.process.kill()
                self.process.wait()
        self.process.stdout.close()


def read_all(s):
    data = b""
    try:
        while piece := s.recv(65536):
            data += piece
    except ConnectionResetError:
        pass
    return data


def check(condition, *what):
    assert condition, what


def eventually(condition, *what):
    end = time.monotonic() + PATIENCE
    while not condition():
        check(time.monotonic() < end, *what)
        time.sleep(0.05)


def refuses(program, *options):
    """The program must not start with these."""
    try:
        refused = subprocess.run([program, "--port", "0", *options], capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        raise AssertionError(f"it started with {options}") from None
    check(refused.returncode != 0 and options[0] in refused.stderr and not refused.stdout, refused)


# ---- weft-echo ----


def test_echo(program):
    data = os.urandom(1 << 20)
    with Demo(program) as demo:
        with demo.connect() as s:
            writer = threading.Thread(target=lambda: (s.sendall(data), s.shutdown(socket.SHUT_WR)))
            writer.start()
            check(read_all(s) == data, "1 MiB comes back as it was")
            writer.join()

        with demo.connect() as idle, demo.connect() as reset:
            reset.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            reset.sendall(b"x")
            reset.close()  # sends a reset
            idle.sendall(b"still there")
            check(idle.recv(100) == b"still there", "a reset ends only its connection")
            check(demo.stop() < 3, "an idle connection does not hold up the stop")
            check(read_all(idle) == b"", "and is closed")

    with Demo(program, "--grace", "0.5") as demo, demo.connect() as stuck:
        stuck.settimeout(0.3)
        try:
            while True:
                stuck.send(data)  # until the demo cannot write any more
        except TimeoutError:
            pass
        took = demo.stop(signal.SIGTERM)
        check(0.4 < took < 5, "one that writes gets the grace", took)

    taken = socket.create_server(("127.0.0.1", 0))
    failed = subprocess.run(
        [program, "--port", str(taken.getsockname()[1])], capture_output=True, text=True, timeout=PATIENCE
    )
    check(failed.returncode == 1 and "cannot listen on" in failed.stderr, failed)
    refuses(program, "--host", "")
    for seconds in ("nan", "-nan", "inf", "-1", "", "x", "2e9"):
        refuses(program, "--grace", seconds)


# ---- weft-http ----


class Response:
    def __init__(self, status, fields, body):
        self.status, self.fields, self.body = status, fields, body


def parse_responses(data, heads_only=False):
    """The responses in `data`, which must be whole ones."""
    responses = []
    while data:
        head, separator, data = data.partition(b"\r\n\r\n")
        assert separator, f"half a response: {head!r}"
        status_line, *lines = head.decode().split("\r\n")
        assert re.fullmatch(r"HTTP/1\.1 \d{3} [A-Za-z ]+", status_line), status_line
        fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = 0 if heads_only else int(fields["content-length"])
        assert len(data) >= length, f"body cut: {len(data)} of {length}"
        responses.append(Response(int(status_line.split()[1]), fields, data[:length]))
        data = data[length:]
    return responses


def talk(demo, text, heads_only=False, end=True):
    """Sends text, ends our side, and returns the responses."""
    with demo.connect() as s:
        s.sendall(text if isinstance(text, bytes) else text.encode())
        if end:
            s.shutdown(socket.SHUT_WR)
        return parse_responses(read_all(s), heads_only)


def get(demo, target, method="GET", fields=""):
    request = f"{method} {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{fields}\r\n"
    [response] = talk(demo, request, heads_only=method == "HEAD", end=False)
    return response


def make_tree(base):
    """A folder to serve, with traps."""
    root = base / "root"
    (root / "sub").mkdir(parents=True)
    (root / "empty").mkdir()
    (root / "a.html").write_text("<p>a</p>")
    (root / "sub" / "index.html").write_text("index of sub")
    (root / "with space.txt").write_text("spaced")
    (root / "big.bin").write_bytes(os.urandom(3_000_000))
    (base / "secret.txt").write_text("secret")
    (base / "root-secret.txt").write_text("secret")
    (root / "out").symlink_to("../secret.txt")
    (root / "outdir").symlink_to("..")
    (root / "absolute").symlink_to(base / "secret.txt")
    (root / "inside").symlink_to("a.html")
    os.mkfifo(root / "fifo")
    return root


def http_pages(demo):
    r = get(demo, "/")
    check(r.status == 200 and r.body == b"Hello, World!\n", r.body)
    check(r.fields["connection"] == "close" and "date" in r.fields and r.fields["content-type"].startswith("text/plain"))
    check(get(demo, "/?x=1").status == 200)
    check(get(demo, "http://example.org/json").status == 200, "absolute form")
    check(get(demo, "http://example.org").status == 200)
    check(get(demo, "http://example.org?x=/json").body == get(demo, "/").body, "a query is no path")
    check(get(demo, "http:///json").status == 400, "no host")
    check(get(demo, "http://example.org#/json").status == 400)
    check(get(demo, "*", "OPTIONS").status == 405)
    check(json.loads(get(demo, "/json").body) == {"message": "Hello, World!"})
    stats = json.loads(get(demo, "/stats").body)
    for key in "goroutines runnable waiting threads idle_threads spawned steals parks polls timers preemptions retakes".split():
        check(isinstance(stats[key], int), key)
    check(stats["procs"] == 2)
    head = get(demo, "/", "HEAD")
    check(head.status == 200 and head.fields["content-length"] == "14")

    began = time.monotonic()
    check(get(demo, "/sleep?ms=200").status == 200)
    check(time.monotonic() - began >= 0.2, "it slept")
    for ms in ("", "?ms=", "?ms=x", "?ms=-1", "?ms=60001", "?ms=99999999999999999999", "?ms=1x", "?sm=1"):
        check(get(demo, "/sleep" + ms).status == 400, ms)

    check(get(demo, "/nope").status == 404)
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH", "WHATEVER"):
        r = get(demo, "/", method)
        check(r.status == 405 and r.fields["allow"] == "GET, HEAD", method)


def http_files(demo, root):
    r = get(demo, "/a.html")
    check(r.status == 200 and r.body == b"<p>a</p>" and r.fields["content-type"] == "text/html; charset=utf-8")
    check(get(demo, "/%61%2Ehtml").body == b"<p>a</p>", "escapes")
    check(get(demo, "/with%20space.txt").body == b"spaced")
    check(get(demo, "/big.bin").body == (root / "big.bin").read_bytes(), "a large file")
    check(get(demo, "/big.bin", "HEAD").fields["content-length"] == "3000000")
    for target in ("/sub", "/sub/", "/sub/../sub/", "//sub"):
        r = get(demo, target)
        check(r.body == b"index of sub" and r.fields["content-type"].startswith("text/html"), target)
    check(get(demo, "/inside").body == b"<p>a</p>", "a link that stays inside")
    for target in (
        "/../secret.txt", "/%2e%2e/secret.txt", "/..%2fsecret.txt", "/%2E%2E%2Fsecret.txt", "/sub/../../secret.txt",
        "/../root-secret.txt", "/../root/a.html", "//../secret.txt", "/sub/%2e%2e/%2e%2e/secret.txt", "/out", "/outdir/secret.txt",
        "/outdir/", "/absolute", str(root.parent / "secret.txt"), "/fifo", "/empty", "/empty/", "/a.html/", "/..",
        "/" + "a" * 300, "/" + "a/" * 2500,
    ):  # fmt: skip
        r = get(demo, target)
        check(r.status == 404 and b"secret" not in r.body, target, r.status)
    for target in ("/%", "/%2", "/%zz", "/a%00.html", "/%2g"):
        check(get(demo, target).status == 400, target)


def http_no_descriptors(program, root):
    def few_descriptors():
        resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))

    request = b"GET /a.html HTTP/1.1\r\nHost: x\r\n\r\n"
    with Demo(program, "--root", str(root), preexec_fn=few_descriptors) as demo, demo.connect() as first:
        held = [demo.connect() for _ in range(40)]

        def ask():
            first.sendall(request)
            return parse_responses(first.recv(65536))[0].status

        eventually(lambda: ask() == 503, "a file that cannot be opened now is not missing")
        for s in held:
            s.close()
        eventually(lambda: ask() == 200, "and is there again, in the same connection")


def http_protocol(demo):
    one = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"

    # Keep-alive, and pipelining: the answers come in order.
    with demo.connect() as s:
        for _ in range(3):
            s.sendall(one.encode())
            check(s.recv(65536).endswith(b"Hello, World!\n"))
    many = talk(demo, one * 500)
    check(len(many) == 500 and all(r.status == 200 and "connection" not in r.fields for r in many))
    mixed = talk(demo, "".join(f"GET {t} HTTP/1.1\r\nHost: x\r\n\r\n" for t in ("/json", "/sleep?ms=50", "/nope", "/")))
    check([r.status for r in mixed] == [200, 200, 404, 200], mixed)
    check(len(talk(demo, "\r\n" + one + "\r\n\r\n" + one)) == 2, "empty lines between requests")
    with demo.connect() as s:  # one request in two pieces
        s.sendall(one.encode() + b"\r")
        check(s.recv(65536).endswith(b"Hello, World!\n"), "half an empty line is no request yet")
        time.sleep(0.1)
        s.sendall(b"\n" + one.encode())
        check(s.recv(65536).startswith(b"HTTP/1.1 200 "), "an empty line in two pieces")
    after_close = talk(demo, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" + one)
    check(len(after_close) == 1 and after_close[0].fields["connection"] == "close")

    # In pieces: one byte at a time.
    with demo.connect() as s:
        for byte in one.encode():
            s.sendall(bytes([byte]))
        check(s.recv(65536).endswith(b"Hello, World!\n"))

    # HTTP/1.0
    [r] = talk(demo, "GET / HTTP/1.0\r\n\r\n", end=False)
    check(r.status == 200 and r.fields["connection"] == "close")
    with demo.connect() as s:
        for _ in range(2):
            s.sendall(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
            check(b"Connection: keep-alive\r\n" in s.recv(65536))

    # Bodies of both forms are skipped, and the next request is found.
    post = "POST / HTTP/1.1\r\nHost: x\r\n"
    chunked = post + "Transfer-Encoding: chunked\r\n\r\n"
    check([r.status for r in talk(demo, post + "Content-Length: 5\r\n\r\nhello" + one)] == [405, 200])
    check([r.status for r in talk(demo, chunked + "5\r\nhello\r\n1;x=y\r\n!\r\n0\r\nA: b\r\n\r\n" + one)] == [405, 200])
    check([r.status for r in talk(demo, chunked + "0\r\n\r\n" + one)] == [405, 200])
    with demo.connect() as s:
        for byte in (chunked + "2\r\nab\r\n0\r\n\r\n").encode():
            s.sendall(bytes([byte]))
            time.sleep(0.001)
        check(b" 405 " in s.recv(65536), "a chunked body byte by byte")
        s.sendall(chunked.encode())
        for byte in b"0\r\n\r\n":
            time.sleep(0.02)
            s.sendall(bytes([byte]))
        check(b" 405 " in s.recv(65536), "the last chunk byte by byte")

    # A client that asks first gets its answer without sending the body.
    [r] = talk(demo, post + "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n", end=False)
    check(r.status == 405 and r.fields["connection"] == "close")
    [r] = talk(demo, "GET / HTTP/1.1\r\nHost: x\r\nExpect: a miracle\r\n\r\n", end=False)
    check(r.status == 417)

    # Nonsense
    head = "GET / HTTP/1.1\r\nHost: x\r\n"
    for text in (
        "nonsense\r\n\r\n", "\x00\x01\x02\x03\r\n\r\n", "GET\r\n\r\n", "GET /\r\n\r\n", "GET / HTTP/9.9\r\n\r\n",
        "GET / HTTP/1.1\n\n", "GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", "GET  / HTTP/1.1\r\n\r\n",
        head + "no colon\r\n\r\n", head + "sp ace: x\r\n\r\n", head + "A: \x01\r\n\r\n",
        head + "Content-Length: x\r\n\r\n", head + "Content-Length: -1\r\n\r\n", head + "Content-Length: 1, 2\r\n\r\n",
        head + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", head + "Transfer-Encoding: gzip\r\n\r\n",
        chunked + "zz\r\n", chunked + "5\r\nhellooo\r\n", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        "GET x HTTP/1.1\r\nHost: x\r\n\r\n", "GET * HTTP/1.1\r\nHost: x\r\n\r\n",
    ):  # fmt: skip
        r = talk(demo, text.encode("latin-1"))
        check([x.status for x in r] == [400], text, [x.status for x in r])
    check([r.status for r in talk(demo, "GET / HT")] == [400], "ends early")
    for text in ("HEAD / HTTP/1.1\r\n\r\n", "HEAD x HTTP/1.1\r\nHost: x\r\n\r\n", "HEAD / HTTP/1.1\r\nHost: x\r\nA"):
        check([r.status for r in talk(demo, text, heads_only=True)] == [400], "no body for a malformed HEAD", text)
    with demo.connect() as s:
        s.sendall(b"HEAD / HTTP/1.1\r\nHost: x\r\n\r\nnonsense\r\n\r\n")
        s.shutdown(socket.SHUT_WR)
        check(read_all(s).endswith(b"malformed request\n"), "what follows a HEAD is none")

    # Too large
    for text in ("X: " + "y" * 20_000, "".join(f"X{i}: y\r\n" for i in range(5000)), "X: " + "y" * 5_000_000):
        check([r.status for r in talk(demo, head + text, end=False)] == [431], len(text))
    check([r.status for r in talk(demo, "GET /" + "a" * 20_000 + " HTTP/1.1\r\n\r\n", end=False)] == [431])
    check([r.status for r in talk(demo, post + "Content-Length: 2000000\r\n\r\n" + "x" * 2_000_000, end=False)] == [413])
    check([r.status for r in talk(demo, chunked + ("10000\r\n" + "x" * 65536 + "\r\n") * 20, end=False)] == [413])
    with demo.connect() as s:  # fields that trickle in are counted, too
        try:
            s.sendall(head.encode())
            for i in range(3000):
                s.sendall(f"X{i}: yyyyyyyyyy\r\n".encode())
        except OSError:
            pass
        check(parse_responses(read_all(s))[0].status == 431)

    check(get(demo, "/").status == 200, "the server goes on")


def http_timeouts(program):
    with Demo(program, "--request-timeout", "0.5", "--idle-timeout", "1", "--write-timeout", "0.5") as demo:
        with demo.connect() as slow, demo.connect() as idle, demo.connect() as used:
            began = time.monotonic()
            slow.sendall(b"GET / HTTP/1.1\r\nHo")
            used.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            [r] = parse_responses(read_all(slow))
            check(r.status == 408 and 0.4 < time.monotonic() - began < 5)
            check(read_all(idle) == b"" and time.monotonic() - began >= 0.9, "idle from the start")
            check(len(parse_responses(read_all(used))) == 1, "idle after a request")
        with demo.connect() as empty:
            began = time.monotonic()
            try:
                while time.monotonic() - began < PATIENCE:
                    empty.sendall(b"\r\n")
                    time.sleep(0.3)
            except OSError:
                pass
            check(time.monotonic() - began < PATIENCE - 1, "empty lines are no request")
        with demo.connect() as slow:
            slow.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhel")
            check(parse_responses(read_all(slow))[0].status == 408, "a slow body")
        with demo.connect() as deaf:  # sends requests, and never reads
            began = time.monotonic()
            try:
                while time.monotonic() - began < PATIENCE:
                    deaf.sendall(b"GET /stats HTTP/1.1\r\nHost: x\r\n\r\n" * 100)
            except OSError:
                pass
            check(time.monotonic() - began < PATIENCE - 1, "one that never reads is given up")
        check(get(demo, "/").status == 200)


def http_stop(program):
    demo = Demo(program)
    with demo.connect() as idle, demo.connect() as half, demo.connect() as busy:
        half.sendall(b"GET / HT")
        busy.sendall(b"GET /sleep?ms=700 HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n")
        time.sleep(0.2)
        took = demo.stop()
        check(0.3 < took < 3, "it waits for the request that runs, and for no other", took)
        slept, last = parse_responses(read_all(busy))
        check(slept.body == b"slept 700 ms\n" and last.status == 200, "what had come is answered")
        check(last.fields["connection"] == "close")
        check(read_all(idle) == b"" and read_all(half) == b"")
    demo = Demo(program, "--grace", "0.3")
    with demo.connect() as busy:
        busy.sendall(b"GET /sleep?ms=30000 HTTP/1.1\r\nHost: x\r\n\r\n")
        time.sleep(0.2)
        check(demo.stop() < 5, "the grace ends")
    demo = Demo(program, "--grace", "60")
    with demo.connect() as busy:
        busy.sendall(b"GET /sleep?ms=30000 HTTP/1.1\r\nHost: x\r\n\r\n")
        time.sleep(0.2)
        demo.process.send_signal(signal.SIGINT)
        time.sleep(0.2)
        check(demo.stop() < 5, "a second signal ends the grace")


def test_http(program):
    with tempfile.TemporaryDirectory() as base:
        root = make_tree(pathlib.Path(base))
        with Demo(program, "--root", str(root)) as demo:
            http_pages(demo)
            http_files(demo, root)
            http_protocol(demo)
        http_no_descriptors(program, root)
    with Demo(program) as demo:
        check(get(demo, "/a.html").status == 404, "without --root there are no files")
    http_timeouts(program)
    http_stop(program)
    failed = subprocess.run([program, "--root", "/nonexistent"], capture_output=True, text=True, timeout=PATIENCE)
    check(failed.returncode == 1 and "/nonexistent" in failed.stderr, failed)
    for size in ("-1", "-18446744073709551000", "x", ""):
        refuses(program, "--max-body", size)
        refuses(program, "--max-head", size)


# ---- weft-chat ----


class Client:
    """A person with nc."""

    def __init__(self, demo, nick=None):
        self.socket = demo.connect()
        self.received = b""
        self.log = []  # the lines seen so far
        self.expect("Welcome")
        if nick:
            self.say(f"/nick {nick}")
            self.expect(f"is now {nick}")

    def say(self, line):
        self.socket.sendall(line.encode() + b"\n")

    def expect(self, text):
        """Reads up to a line with text in it, and returns that line."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            while b"\n" in self.received:
                line, _, self.received = self.received.partition(b"\n")
                self.log.append(line.decode())
                if text in self.log[-1]:
                    return self.log[-1]
            piece = self.socket.recv(65536)
            assert piece, f"the connection ended before {text!r}"
            self.received += piece
        raise AssertionError(f"never saw {text!r}")

    def expect_end(self):
        read_all(self.socket)


def deaf_crowd(demo, size):
    """Clients that never read, and somebody who floods their room until the end."""

    def deaf():
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        s.connect(("127.0.0.1", demo.port))
        return s

    def read(s):
        try:
            read_all(s)
        except OSError:
            pass

    def flood(s):
        try:
            while True:
                s.sendall(b"x" * 1000 + b"\n")
        except OSError:
            pass

    crowd = [deaf() for _ in range(size)]
    flooder = demo.connect()
    for work in (read, flood):
        threading.Thread(target=work, args=(flooder,), daemon=True).start()
    return crowd + [flooder]


def chat_crowd(program):
    with Demo(program, "--grace", "1") as demo:
        ann, bob = Client(demo, "ann"), Client(demo, "bob")
        for who in (ann, bob):
            who.say("/join quiet")
            who.expect("now in #quiet")
        crowd = deaf_crowd(demo, 30)
        end, worst = time.monotonic() + 2, 0
        while (began := time.monotonic()) < end:
            ann.say("ping")
            bob.expect("ann: ping")
            worst = max(worst, time.monotonic() - began)
        check(worst < 1, "a crowd that does not read holds up no other room", worst)
        ann.say("/join lobby")
        ann.expect("now in #lobby")
        ann.say("/who")
        check(ann.expect("In #lobby:").count("guest") == 1, "and is dropped")
        for s in crowd:
            s.close()

    with Demo(program) as demo:
        crowd = [Client(demo, f"twenty-letters-are{i:02}") for i in range(40)]
        crowd[0].say("/who")
        who = crowd[0].expect("In #lobby:")
        check(len(who) <= 500, "a long answer comes in lines", len(who))
        crowd[0].say("/rooms")
        crowd[0].expect("#lobby (40)")
        check("twenty-letters-are39" in " ".join(crowd[0].log), "and is whole")

    with Demo(program, "--grace", "1") as demo:
        crowd = deaf_crowd(demo, 30)
        time.sleep(0.5)
        took = demo.stop(signal.SIGTERM)
        check(took < 3, "a crowd that does not read does not hold up the stop", took)
        for s in crowd:
            s.close()


def test_chat(program):
    with Demo(program) as demo:
        ann, bob, cyd = Client(demo, "ann"), Client(demo, "bob"), Client(demo, "cyd")

        ann.say("hello")
        check(bob.expect("hello") == "ann: hello" and cyd.expect("hello") == "ann: hello")
        cyd.say("/nick ANN")
        cyd.expect("taken")
        cyd.say("/nick a b")
        cyd.expect("A name has")
        cyd.say("/nick Guest1")
        cyd.expect("for guests")
        cyd.say("/who")
        check(cyd.expect("In #lobby:") == "* In #lobby: ann bob cyd")

        # Rooms
        bob.say("/join #kitchen")
        bob.expect("now in #kitchen")
        ann.expect("bob went to #kitchen")
        cyd.say("/rooms")
        check(cyd.expect("Rooms:") == "* Rooms: #kitchen (1) #lobby (2)")
        ann.say("only for the lobby")
        cyd.expect("only for the lobby")
        cyd.say("/join kitchen")
        bob.expect("cyd is here")
        cyd.say("in the kitchen")
        check(bob.expect("kitchen") == "cyd: in the kitchen", "and nothing of the lobby came")

        # What others send is safe to show.
        cyd.socket.sendall(b"\x1b[31mred\x07 \xff\xfe \xc2\x9b1m caf\xc3\xa9 \xed\xa0\x80\ttab\r\n")
        check(bob.expect("red") == "cyd: [31mred \ufffd\ufffd 1m caf\u00e9 \ufffd\ufffd\ufffd tab")
        cyd.say("x" * 5000)
        check(bob.expect("xxx") == "cyd: " + "x" * 1024, "long lines are cut")
        cyd.say("/nonsense")
        cyd.expect("There is no command /nonsense")
        cyd.say("/help")
        cyd.expect("/quit")

        last = Client(demo, "last")
        last.say("/join kitchen")
        bob.expect("last is here")
        last.socket.sendall(b"the last line\nand one without its end")
        last.socket.shutdown(socket.SHUT_WR)
        check(bob.expect("end") == "last: and one without its end")
        bob.expect("last left")
        last.expect_end()

        cyd.say("/quit")
        cyd.expect("Goodbye")
        cyd.expect_end()
        bob.expect("cyd left")
        ann.socket.close()

        # A client that never reads is dropped, with a message; the others notice nothing.
        ann = Client(demo, "ann")
        bob.say("/join lobby")
        bob.expect("now in #lobby")
        deaf = Client(demo, "deaf")
        ann.expect("is now deaf")
        bob.expect("is now deaf")
        for i in range(2000):
            ann.say(f"line {i} " + "." * 900)
            check(bob.expect("line").startswith(f"ann: line {i} "))
            if i % 50 == 0:
                ann.say("/who")
                if "deaf" not in ann.expect("In #lobby:"):
                    break
        ann.say("still here")
        bob.expect("ann: still here")
        check("* deaf was dropped: it does not read" in bob.log)
        check(b"You were dropped" in read_all(deaf.socket), "and is told when it reads at last")

        # A flood arrives whole at a client that reads.
        flood = 3000
        sender = threading.Thread(target=lambda: [ann.say(f"{i} of the flood") for i in range(flood)])
        sender.start()
        for i in range(flood):
            check(bob.expect("of the flood") == f"ann: {i} of the flood")
        sender.join()

        check(demo.stop() < 4)
        ann.expect("The server stops")
        bob.expect("The server stops")
        bob.expect_end()

    with Demo(program, "--idle", "1.5") as demo:
        silent, chatty = Client(demo, "silent"), Client(demo, "chatty")
        silent.expect("Are you still there?")
        chatty.say("I am")
        silent.expect("You were silent for too long")
        silent.expect_end()
        chatty.expect("silent was silent for too long")
    chat_crowd(program)
    refuses(program, "--idle", "nan")


if __name__ == "__main__":
    {"echo": test_echo, "http": test_http, "chat": test_chat}[sys.argv[1]](sys.argv[2])
    print("ok")
