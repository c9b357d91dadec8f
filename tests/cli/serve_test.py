#!/usr/bin/env python3
"""`tuff serve` from outside, with a small random model: answers, streams, limits, keys, garbage, the end.

Usage: serve_test.py TUFF
"""
import base64
import concurrent.futures
import contextlib
import json
import pathlib
import shutil
import signal
import socket
import struct
import sys
import tempfile
import time
import unittest

from served import Served, question, text_of

MODELS = pathlib.Path(__file__).resolve().parent.parent / "data/language"
CHAT = "/v1/chat/completions"


def make_model(folder):
    """Whose template has the letters of all messages, one turn behind the other."""
    model = pathlib.Path(folder) / "letters"
    shutil.copytree(MODELS / "llama3", model)
    (model / "chat_template.jinja").write_text("{% for m in messages %}{{ m.content }}{% endfor %}"
                                               "{% if tools %}{{ tools[0].function.name }}{% endif %}")
    return model


class ServeTest(unittest.TestCase):
    OPTIONS = []

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.model = make_model(folder.name)
        cls.server = Served(TUFF, cls.model, *cls.OPTIONS)
        cls.addClassCleanup(cls.server.__exit__)

    def refused(self, status, wanted, body, path=CHAT, **more):
        got, answer = self.server.ask("POST", path, body, **more)
        self.assertEqual(got, status, answer)
        self.assertIn(wanted, answer["error"]["message"])
        return answer["error"]

    def metric(self, name):
        text = self.server.ask("GET", "/metrics")[1]
        return next(float(line.split()[-1]) for line in text.splitlines() if line.startswith(name + " "))

    def eventually(self, holds):
        until = time.monotonic() + 20
        while not holds():
            self.assertLess(time.monotonic(), until)
            time.sleep(0.05)


class Answers(ServeTest):
    def test_says_where_it_listens_and_what_it_has(self):
        self.assertEqual(self.server.start["host"], "127.0.0.1")
        self.assertGreater(self.server.start["graphs"], 4, "it is warm")
        self.assertEqual(self.server.ask("GET", "/health"), (200, {"status": "ok"}))
        status, models = self.server.ask("GET", "/v1/models")
        self.assertEqual((status, models["data"][0]["id"]), (200, "letters"))
        self.assertEqual(self.server.ask("GET", "/v1/models/letters")[1]["object"], "model")
        self.assertEqual(self.server.ask("GET", "/v1/models/other")[0], 404)
        self.assertIn("<!doctype html>", self.server.ask("GET", "/")[1])

    def test_an_answer_and_its_stream_are_equal(self):
        whole = self.server.chat("abc", max_tokens=8)
        text = whole["choices"][0]["message"]["content"]
        self.assertEqual(whole["choices"][0]["finish_reason"], "length")
        self.assertEqual(whole["usage"]["completion_tokens"], 8)
        self.assertEqual(whole["usage"]["prompt_tokens"], 3)
        events = list(self.server.events("abc", max_tokens=8, stream_options={"include_usage": True}))
        self.assertEqual(text_of(events), text)
        self.assertEqual(events[-1]["usage"]["completion_tokens"], 8)
        self.assertEqual(events[-2]["choices"][0]["finish_reason"], "length")
        self.assertEqual({e["id"] for e in events}, {events[0]["id"]})

    def test_stop_n_seed_and_logprobs(self):
        text = self.server.chat("abc", max_tokens=8)["choices"][0]["message"]["content"]
        stopped = self.server.chat("abc", max_tokens=8, stop=text[2:4])["choices"][0]
        self.assertEqual(stopped["message"]["content"], text[:text.index(text[2:4])])
        self.assertEqual(stopped["finish_reason"], "stop")
        def drawn(**more):
            choices = self.server.chat("abc", max_tokens=12, n=3, **{"temperature": 1, **more})["choices"]
            return [c["message"]["content"] for c in choices]
        self.assertEqual(drawn(seed=5), drawn(seed=5))
        self.assertEqual(len(set(drawn(seed=5))), 3)
        choice = self.server.chat("abc", max_tokens=3, logprobs=True, top_logprobs=2)["choices"][0]
        tokens = choice["logprobs"]["content"]
        self.assertEqual(len(tokens), 3)
        self.assertEqual(tokens[0]["top_logprobs"][0]["token"], tokens[0]["token"], "greedy")
        self.assertLess(tokens[0]["logprob"], 0)
        banned = self.server.chat("abc", max_tokens=3, logit_bias={str(i): -100 for i in range(48) if i != 7})
        self.assertEqual(banned["choices"][0]["message"]["content"], "hhh")

    def test_completions(self):
        status, a = self.server.ask("POST", "/v1/completions", {"prompt": ["abc", [0, 1, 2]], "max_tokens": 4,
                                                                "echo": True, "temperature": 0})
        self.assertEqual(status, 200)
        self.assertEqual(a["choices"][0]["text"], a["choices"][1]["text"])
        self.assertTrue(a["choices"][0]["text"].startswith("abc"))
        self.assertEqual(a["usage"]["prompt_tokens"], 6)

    def test_embeddings(self):
        status, a = self.server.ask("POST", "/v1/embeddings", {"input": ["abc", "abd"]})
        self.assertEqual(status, 200)
        vector = a["data"][0]["embedding"]
        self.assertAlmostEqual(sum(x * x for x in vector), 1, places=4)
        packed = self.server.ask("POST", "/v1/embeddings", {"input": "abc", "encoding_format": "base64"})[1]
        data = base64.b64decode(packed["data"][0]["embedding"])
        for a, b in zip(struct.unpack(f"<{len(vector)}f", data), vector):
            self.assertAlmostEqual(a, b, places=6)

    def test_64_clients_get_the_answers_of_one(self):
        prompts = ["abc", "dd", "efgh", "zyx"]
        wanted = {p: self.server.chat(p, max_tokens=10)["choices"][0]["message"]["content"] for p in prompts}
        with concurrent.futures.ThreadPoolExecutor(64) as pool:
            def ask(i):
                p = prompts[i % 4]
                if i % 2:
                    return text_of(self.server.events(p, max_tokens=10)) == wanted[p]
                return self.server.chat(p, max_tokens=10)["choices"][0]["message"]["content"] == wanted[p]
            self.assertEqual(list(pool.map(ask, range(64))), [True] * 64)

    def test_who_goes_is_not_waited_for(self):
        """Small models answer fast: it is tried until an answer was not over before."""
        def cancelled_by_leaving(stream):
            before = self.metric("tuff_answers_cancelled_total")
            body = json.dumps(question("abc", n=64, max_tokens=60, stream=stream)).encode()
            with socket.create_connection(("127.0.0.1", self.server.port)) as s:
                s.sendall(b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                          b"Content-Length: %d\r\n\r\n%s" % (CHAT.encode(), len(body), body))
                time.sleep(0.01)
            self.eventually(lambda: self.metric("tuff_answers_running") + self.metric("tuff_answers_waiting") == 0)
            return self.metric("tuff_answers_cancelled_total") > before
        for stream in (False, True):
            self.eventually(lambda s=stream: cancelled_by_leaving(s))

    def test_refusals_name_the_value_and_the_fix(self):
        self.assertEqual(self.refused(400, "top_p is 7", question("a", top_p=7))["param"], "top_p")
        self.refused(400, "did you mean temperature?", question("a", temprature=1))
        self.refused(400, "logit_bias has token 99: the vocabulary has 48", question("a", logit_bias={"99": 1}))
        self.assertEqual(self.refused(404, "there is no model \"x\"; there is letters",
                                      question("a", model="x"))["code"], "model_not_found")
        self.assertEqual(self.refused(400, "--context", question("a" * 200))["code"], "context_length_exceeded")
        self.refused(400, "the prompt has no token", question(""))
        self.refused(400, "no JSON", None, raw="{")
        self.refused(400, "no JSON", None, raw=b"\xff\xfe")
        self.refused(415, "application/json was wanted", None, raw="{}", headers={"Content-Type": "text/plain"})
        self.refused(415, "Content-Encoding is gzip", {}, headers={"Content-Encoding": "gzip"})
        self.refused(404, "there is no /v1/images", {}, path="/v1/images")
        self.refused(405, "GET was wanted", {}, path="/health")
        self.refused(403, "--host evil.example", {}, headers={"Host": "evil.example"})
        self.refused(403, "Host is 127.evil.example:80", {}, headers={"Host": "127.evil.example:80"})
        self.assertEqual(self.server.ask("GET", CHAT)[0], 405)
        self.refused(413, "--max-body", None, raw=" " * (5 << 20))
        self.assertEqual(self.server.ask("GET", "/health")[0], 200)

    def test_garbage_does_no_harm(self):
        pieces = [b"", b"\0" * 100, b"GET", b"GET / HTTP/9.9\r\n\r\n", b"\r\n\r\n", b"A" * 100000,
                  b"POST /v1/completions HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
                  b"POST /v1/completions HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\nx",
                  b"POST /v1/completions HTTP/1.1\r\nContent-Type: application/json\r\n"
                  b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
                  b"GET /health HTTP/1.1\r\n" + b"X: y\r\n" * 20000 + b"\r\n",
                  b"GET /%00%ff/../../etc/passwd HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00"]
        for piece in pieces:
            with socket.create_connection(("127.0.0.1", self.server.port), timeout=5) as s:
                try:
                    s.sendall(piece)
                    s.shutdown(socket.SHUT_WR)
                    while s.recv(65536):
                        pass
                except ConnectionError:
                    pass
        self.assertEqual(self.server.ask("GET", "/health")[0], 200)
        self.assertEqual(self.server.chat("abc", max_tokens=2)["usage"]["completion_tokens"], 2)


class Limits(ServeTest):
    OPTIONS = ["--sequences", "1", "--queue", "1", "--api-key", "first", "--api-key", "second"]

    def test_keys(self):
        ask = self.server.ask
        self.assertEqual(ask("GET", "/health")[0], 200)
        self.assertEqual(ask("GET", "/")[0], 200)
        for headers in ({}, {"Authorization": "Bearer third"}, {"Authorization": "Bearer "}, {"Authorization": "first"},
                        {"Authorization": "Bearer firs"}, {"Authorization": "Bearer firstfirst"}):
            for path in ("/v1/models", "/metrics"):
                status, answer = ask("GET", path, headers=headers)
                self.assertEqual((status, answer["error"]["code"]), (401, "invalid_api_key"))
            self.assertEqual(ask("POST", CHAT, question("a"), headers)[0], 401)
        for key in ("first", "second"):
            self.assertEqual(ask("GET", "/v1/models", headers={"Authorization": "Bearer " + key})[0], 200)

    def test_connections_that_say_nothing_give_way(self):
        with contextlib.ExitStack() as stack:
            for _ in range(50):  # more than the server has threads
                stack.enter_context(socket.create_connection(("127.0.0.1", self.server.port)))
            with self.server.connect(timeout=10) as c:
                c.request("GET", "/health")
                self.assertEqual(c.getresponse().status, 200)

    def test_the_queue_is_bounded(self):
        key = {"Authorization": "Bearer first"}
        self.refused(400, "asks for 3 answers: the server writes 2", question("a", n=3), headers=key)
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            asked = [pool.submit(self.server.ask, "POST", CHAT, question("ab", max_tokens=50), key) for _ in range(16)]
            answers = [a.result() for a in asked]
        self.assertEqual({status for status, _ in answers}, {200, 429})
        self.assertIn("--queue", next(a["error"]["message"] for status, a in answers if status == 429))


class Keep(ServeTest):
    OPTIONS = ["--keep", "2", "--context", "16"]

    def test_answers_go_on_beyond_the_context(self):
        a = self.server.chat("abc", max_tokens=40)
        self.assertEqual(a["usage"]["completion_tokens"], 40)


class Drafts(ServeTest):
    OPTIONS = ["--draft", str(MODELS / "llama3.gguf"), "--draft-tokens", "3", "--sequences", "2"]

    def test_are_counted(self):
        a = self.server.chat("abc", max_tokens=20)
        self.assertEqual(a["usage"]["completion_tokens"], 20)
        self.assertGreater(self.metric("tuff_accepted_tokens_total"), 0)
        self.assertLess(self.metric("tuff_model_calls_total"), 20)


class Encoder(ServeTest):
    """A model that only embeds."""

    @classmethod
    def setUpClass(cls):
        cls.server = Served(TUFF, MODELS / "bert_mean.gguf")
        cls.addClassCleanup(cls.server.__exit__)

    def test_embeds_and_says_that_it_writes_no_texts(self):
        ask = self.server.ask
        self.assertEqual(self.server.start["graphs"], 3)
        self.assertEqual(ask("GET", "/health"), (200, {"status": "ok"}))
        row = ask("GET", "/v1/models")[1]["data"][0]
        self.assertEqual((row["architecture"], row["context_length"]), ("bert", 64))
        status, a = ask("POST", "/v1/embeddings", {"input": ["abc", "abd"]})
        self.assertEqual((status, len(a["data"]), len(a["data"][0]["embedding"])), (200, 2, 32))
        self.refused(400, "150 tokens exceed the context of 64", {"input": ["abc" * 50]}, path="/v1/embeddings")
        for path, body in ((CHAT, question("abc")), ("/v1/completions", {"prompt": "abc"})):
            error = self.refused(400, "bert_mean is an encoder (bert), which writes no texts: ask /v1/embeddings",
                                 body, path=path)
            self.assertEqual(error["code"], "model_writes_no_texts")
        self.assertEqual(self.metric("tuff_answers_running"), 0)
        self.assertEqual(self.server.end(), (0, ""))


class End(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.model = make_model(folder.name)

    def test_running_answers_end(self):
        with Served(TUFF, self.model, "--shutdown-time", "20") as server:
            events = server.events("abc", max_tokens=60)
            first = next(events)
            server.process.send_signal(signal.SIGINT)
            self.assertGreater(len(text_of([first, *events])), 30, "nothing was cut off")
            self.assertEqual(server.process.wait(20), 0)

    def test_after_the_time_they_are_ended(self):
        with Served(TUFF, self.model, "--shutdown-time", "0") as server:
            with server.connect() as c:
                c.request("POST", CHAT, json.dumps(question("abc", n=60, stream=True)),
                          {"Content-Type": "application/json"})
                c.getresponse()
                self.assertEqual(server.end(signal.SIGTERM), (0, ""))

    def test_killed_and_started_again(self):
        with Served(TUFF, self.model) as server:
            next(server.events("abc", n=60))
            port = server.port
            server.process.kill()
        with Served(TUFF, self.model, port=port) as server:
            self.assertEqual(server.chat("abc", max_tokens=2)["usage"]["completion_tokens"], 2)

    def test_idle_connections_are_closed(self):
        with Served(TUFF, self.model) as server:
            with server.connect() as c, socket.create_connection(("127.0.0.1", server.port)):
                c.request("GET", "/health")
                c.getresponse().read()
                begin = time.monotonic()
                self.assertEqual(server.end()[0], 0)
                self.assertLess(time.monotonic() - begin, 5)

    def test_a_port_that_is_taken(self):
        with Served(TUFF, self.model) as server:
            with self.assertRaisesRegex(RuntimeError, "cannot listen on 127.0.0.1 port"):
                Served(TUFF, self.model, port=server.port)

    def test_warns_where_everybody_can_ask(self):
        with Served(TUFF, self.model, "--host", "0.0.0.0") as server:
            self.assertEqual(server.ask("GET", "/health")[0], 200)
            code, error = server.end()
            self.assertEqual(code, 0)
            self.assertIn("warning: whoever reaches http://0.0.0.0:", error)
        keys = self.folder / "keys"
        keys.write_text("one\ntwo\n")
        with Served(TUFF, self.model, "--host", "0.0.0.0", "--api-key-file", keys) as server:
            self.assertEqual(server.ask("GET", "/v1/models", headers={"Authorization": "Bearer two"})[0], 200)
            self.assertEqual(server.end(), (0, ""))

    def test_what_does_not_fit_is_said_at_once(self):
        keys = self.folder / "keys"
        keys.write_text("\n")
        for wanted, options in (("a key on each line", ["--api-key-file", keys]), ("is empty", ["--api-key", ""]),
                                ("No such file", ["--chat-template", "missing"]),
                                ("line 1", ["--chat-template", self.bad_template()]),
                                ("--keep 64: fewer tokens", ["--keep", "64"]),
                                ("trained for 1 to 64", ["--context", "65"])):
            with self.assertRaisesRegex(RuntimeError, wanted):
                Served(TUFF, self.model, *options)

    def bad_template(self):
        path = self.folder / "bad.jinja"
        path.write_text("{% for %}")
        return path


if __name__ == "__main__":
    TUFF = sys.argv[1]
    unittest.main(argv=sys.argv[:1])
