#!/usr/bin/env python3
"""`tuff serve` under load: clients that stream, some of them slow, some that leave, and garbage.

Usage: bench/serve_soak.py TUFF MODEL [--seconds 300] [--clients 64] [--sequences 16] [--device CPU] [--json FILE]
Every answer that is read to its end has to be the one that a single client gets (greedy); none may be missing. Memory
is read every second: after the first fifth of the time it must not grow by more than a twentieth. Exits with 1
otherwise.
"""
import argparse
import collections
import json
import pathlib
import random
import socket
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests/cli"))
from served import Served, events_of, question, text_of  # noqa: E402

PROMPTS = ["Why is the sky blue?", "Name three rivers.", "What is a prime number?", "Write a line about snow.",
           "How do birds fly?", "Say hello in French.", "What is 12 times 12?", "Describe a cat."]
LENGTHS = [8, 24, 48]
GARBAGE = [b"\0" * 500, b"GET", b"A" * 20000, b"\r\n\r\n",
           b"POST /v1/completions HTTP/1.1\r\nContent-Length: 50\r\n\r\n{",
           b"POST /v1/chat/completions HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 3\r\n\r\n[1]"]
BAD_BODIES = [b"{", b"[]", b"{\"messages\": 5}", b"[" * 5000, b"\xff\xfe", b"{\"messages\": [{\"role\": \"x\"}]}"]
CONTEXT = 256  # small, so that all of the cache has been used once before memory is compared
QUEUE = 40  # of 64 clients some are refused now and then
TEXTS = {}  # of a single client


class Load:
    def __init__(self, server, seconds):
        self.server, self.end = server, time.monotonic() + seconds
        self.counts, self.problems, self.lock = collections.Counter(), [], threading.Lock()
        self.first_token_s = []

    def count(self, what, n=1):
        with self.lock:
            self.counts[what] += n

    def problem(self, text):
        with self.lock:
            self.problems.append(text)

    def run(self, number):
        draw = random.Random(number)
        kinds = [self.stream] * 6 + [self.read_slowly, self.leave, self.send_garbage, self.whole]
        while time.monotonic() < self.end:
            kind = draw.choice(kinds)
            try:
                kind(draw)
            except Exception as e:  # whatever a client meets is a finding
                self.problem(f"{kind.__name__}: {type(e).__name__}: {e}")
                time.sleep(0.2)

    def begin(self, draw, stream):
        prompt, tokens = draw.choice(PROMPTS), draw.choice(LENGTHS)
        body = json.dumps(question(prompt, max_tokens=tokens, stream=stream))
        return (prompt, tokens), ("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})

    def refused(self):
        """As OpenAI's client does, which asks again after the time that Retry-After says."""
        self.count("refused for a full queue")
        time.sleep(1)

    def finished(self, key, text, kind):
        self.count(kind)
        self.count("tokens", key[1])
        if text != TEXTS[key]:
            self.problem(f"{key}: {text!r} instead of {TEXTS[key]!r}")

    def stream(self, draw, pause_s=0.0, kind="streams"):
        key, request = self.begin(draw, True)
        with self.server.connect(timeout=300) as c:
            begin = time.monotonic()
            c.request(*request)
            response = c.getresponse()
            if response.status == 429:
                return self.refused()
            events = []
            for event in events_of(response):
                if len(events) == 1:
                    with self.lock:
                        self.first_token_s.append(time.monotonic() - begin)
                events.append(event)
                time.sleep(pause_s)
            return self.finished(key, text_of(events), kind)

    def read_slowly(self, draw):
        self.stream(draw, 0.25, "streams that are read slowly")

    def whole(self, draw):
        key, request = self.begin(draw, False)
        with self.server.connect(timeout=300) as c:
            c.request(*request)
            response = c.getresponse()
            answer = json.loads(response.read())
            if response.status == 429:
                return self.refused()
            return self.finished(key, answer["choices"][0]["message"]["content"], "whole answers")

    def leave(self, draw):
        _, request = self.begin(draw, draw.random() < 0.5)
        with self.server.connect(timeout=300) as c:
            c.request(*request)
            c.sock.settimeout(draw.uniform(0.01, 10))
            try:
                if c.sock.recv(draw.randrange(20, 2000)).startswith(b"HTTP/1.1 429"):
                    return self.refused()
            except TimeoutError:
                pass
        return self.count("clients that left")

    def send_garbage(self, draw):
        if draw.random() < 0.5:
            status, _ = self.server.ask("POST", "/v1/chat/completions", raw=draw.choice(BAD_BODIES))
            if status != 400:
                self.problem(f"a bad body was answered with {status}")
        else:
            with socket.create_connection(("127.0.0.1", self.server.port), timeout=60) as s:
                try:
                    s.sendall(draw.choice(GARBAGE))
                    s.shutdown(socket.SHUT_WR)
                    while s.recv(4096):
                        pass
                except ConnectionError:
                    pass
        self.count("garbage")
        time.sleep(draw.uniform(0, 1))


def learn(server):
    for prompt in PROMPTS:
        for tokens in LENGTHS:
            TEXTS[prompt, tokens] = server.chat(prompt, max_tokens=tokens)["choices"][0]["message"]["content"]


def soak(server, seconds, clients):
    load = Load(server, seconds)
    threads = [threading.Thread(target=load.run, args=(i,), daemon=True) for i in range(clients)]
    begin = time.monotonic()
    memory = []
    for t in threads:
        t.start()
    while any(t.is_alive() for t in threads) and time.monotonic() < load.end + 300:
        memory.append(server.memory_kib())
        time.sleep(1)
    if any(t.is_alive() for t in threads):
        load.problem("clients that never got an answer")
    return load, memory, time.monotonic() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tuff")
    parser.add_argument("model")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--sequences", type=int, default=16)
    parser.add_argument("--device", default="CPU")
    parser.add_argument("--json", help="a file that the result is appended to")
    args = parser.parse_args()
    options = ["--sequences", args.sequences, "--context", CONTEXT, "--queue", QUEUE]
    with Served(args.tuff, args.model, *options, device=args.device) as server:
        learn(server)
        load, memory, seconds = soak(server, args.seconds, args.clients)
        early, late = max(memory[:max(1, len(memory) // 5)]), max(memory)
        if late > early * 1.05:
            load.problem(f"memory grew from {early >> 10} to {late >> 10} MiB")
        metrics = server.ask("GET", "/metrics")[1]
        gauges = ("tuff_answers_running", "tuff_answers_waiting")
        left = [line for line in metrics.splitlines() if line.startswith(gauges)]
        if any(not line.endswith(" 0") for line in left):
            load.problem(f"answers are left over: {left}")
        code, error = server.end()
        if code or error:
            load.problem(f"the server ended with {code}: {error}")
    firsts = sorted(load.first_token_s)
    row = {"model": server.model, "device": args.device, "clients": args.clients,
           "sequences": args.sequences, "seconds": round(seconds, 1),
           **dict(sorted(load.counts.items())), "tokens_per_second": round(load.counts["tokens"] / seconds, 1),
           "first_token_median_s": round(firsts[len(firsts) // 2], 2) if firsts else None,
           "first_token_worst_s": round(firsts[-1], 2) if firsts else None, "memory_early_mib": early >> 10,
           "memory_late_mib": late >> 10, "problems": len(load.problems)}
    print(json.dumps(row, indent=1))
    for text in load.problems[:20]:
        print("PROBLEM", text)
    if args.json:
        with open(args.json, "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
    sys.exit(1 if load.problems else 0)


if __name__ == "__main__":
    main()
