"""`tuff serve` as a process, and clients of it. Shared by serve_test.py, page_test.py and bench/serve_soak.py."""
import contextlib
import http.client
import json
import os
import signal
import subprocess


class Served:
    """A server on a free port of 127.0.0.1; ends with the block."""

    def __init__(self, tuff, model, *options, device="CPU", port=0):
        env = {k: v for k, v in os.environ.items() if not k.startswith("TUFF_")}
        command = [tuff, "serve", model, "--port", port, "--json", "--device", device, *options]
        self.process = subprocess.Popen([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        encoding="utf-8", env=env)
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{command}: {self.process.communicate()[1]}")
        self.start = json.loads(line)
        self.port, self.url, self.model = (self.start[k] for k in ("port", "url", "model"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def end(self, how=signal.SIGTERM, timeout=30):
        """Its exit code and what it said on standard error."""
        self.process.send_signal(how)
        error = self.process.communicate(timeout=timeout)[1]
        return self.process.returncode, error

    def memory_kib(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))

    def connect(self, timeout=60):
        return contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout))

    def ask(self, method, path, body=None, headers=None, raw=None):
        """Status, and the body: parsed where it is JSON."""
        headers = {**({"Content-Type": "application/json"} if body is not None or raw is not None else {}),
                   **(headers or {})}
        with self.connect() as c:
            c.request(method, path, json.dumps(body) if raw is None and body is not None else raw, headers)
            response = c.getresponse()
            data = response.read()
            is_json = response.getheader("Content-Type", "").startswith("application/json")
            return response.status, json.loads(data) if is_json else data.decode()

    def chat(self, text, **more):
        status, body = self.ask("POST", "/v1/chat/completions", question(text, **more))
        if status != 200:
            raise RuntimeError(body)
        return body

    def events(self, text, **more):
        """The events of a stream, as they come."""
        with self.connect() as c:
            c.request("POST", "/v1/chat/completions", json.dumps(question(text, stream=True, **more)),
                      {"Content-Type": "application/json"})
            response = c.getresponse()
            if response.status != 200:
                raise RuntimeError(response.read())
            yield from events_of(response)


def question(text, **more):
    return {"messages": [{"role": "user", "content": text}], "temperature": 0, **more}


def events_of(response):
    for line in response:
        if line.startswith(b"data: "):
            data = line[6:].strip()
            if data == b"[DONE]":
                return
            yield json.loads(data)
    raise RuntimeError("the stream broke off")


def text_of(events):
    return "".join(c["delta"].get("content", "") for e in events for c in e.get("choices", []))
