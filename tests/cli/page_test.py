#!/usr/bin/env python3
"""The chat page of `tuff serve` in a real browser: Debian's chromium, driven by chromedriver (scripts/page-test).

Usage: page_test.py TUFF [MODEL [PICTURES]]
Without MODEL a small random one writes letters, behind a proxy that makes it as slow as a large one is. PICTURES: a
folder for screenshots. Exits with 77 where there is no chromium or chromedriver.
"""
import base64
import contextlib
import http.client
import http.server
import json
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import serve_test
from served import Served

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # WebDriver's name of a reference
ENTER, ESCAPE = "\ue007", "\ue00c"


def one_by_one(line):
    """An event of a stream for each character: a small model writes several tokens until the first is sent."""
    if not line.startswith(b"data: {"):
        return [line]
    event = json.loads(line[6:])
    text = event["choices"][0]["delta"].get("content") if event["choices"] else None
    if not text:
        return [line]
    out = []
    for character in text:
        event["choices"][0]["delta"]["content"] = character
        out.append(b"data: " + json.dumps(event).encode() + b"\n\n")
    return out


class SlowProxy(http.server.BaseHTTPRequestHandler):
    """Passes requests on, and the events of streams one by one."""
    upstream, pause_s = 0, 0.05
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.pass_on(None)

    def do_POST(self):
        self.pass_on(self.rfile.read(int(self.headers["Content-Length"])))

    def pass_on(self, body):
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.upstream)) as c:
            c.request(self.command, self.path, body, {"Content-Type": "application/json"})
            response = c.getresponse()
            self.send_response(response.status)
            self.send_header("Content-Type", response.getheader("Content-Type"))
            self.send_header("Connection", "close")
            self.end_headers()
            with contextlib.suppress(ConnectionError):
                for line in (part for whole in response for part in one_by_one(whole)):
                    self.wfile.write(line)
                    if line.startswith(b"data: "):
                        time.sleep(self.pause_s)
        self.close_connection = True

    def log_message(self, *_):
        pass


class Browser:
    """A session of WebDriver (W3C), by its JSON over HTTP."""

    def __init__(self, width, height, dark=False, phone=False):
        self.folder = tempfile.TemporaryDirectory()
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.driver = subprocess.Popen([shutil.which("chromedriver"), f"--port={self.port}"], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                     f"--window-size={width},{height}", f"--user-data-dir={self.folder.name}"]
        options = {"args": arguments, "binary": shutil.which("chromium")}
        if phone:
            options["mobileEmulation"] = {"deviceMetrics": {"width": width, "height": height, "pixelRatio": 2}}
        until = time.monotonic() + 60
        while True:
            try:
                session = self.call("POST", "/session",
                                    {"capabilities": {"alwaysMatch": {"goog:chromeOptions": options}}})
                break
            except OSError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.2)
        self.session = "/session/" + session["sessionId"]
        if dark:
            self.call("POST", self.session + "/goog/cdp/execute", {"cmd": "Emulation.setEmulatedMedia", "params": {
                "features": [{"name": "prefers-color-scheme", "value": "dark"}]}})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(Exception):
            self.call("DELETE", self.session)
        self.driver.terminate()
        self.driver.wait(10)
        with contextlib.suppress(OSError):
            self.folder.cleanup()

    def call(self, method, path, body=None):
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)) as c:
            c.request(method, path, json.dumps(body or {}) if method == "POST" else None,
                      {"Content-Type": "application/json"})
            value = json.loads(c.getresponse().read())["value"]
        if isinstance(value, dict) and "error" in value:
            raise RuntimeError(f"{value['error']}: {value['message']}")
        return value

    def open(self, url):
        self.call("POST", self.session + "/url", {"url": url})

    def reload(self):
        self.call("POST", self.session + "/refresh")

    def run(self, script):
        return self.call("POST", self.session + "/execute/sync", {"script": "return " + script, "args": []})

    def element(self, selector):
        found = self.call("POST", self.session + "/element", {"using": "css selector", "value": selector})
        return f"{self.session}/element/{found[ELEMENT]}"

    def click(self, selector):
        self.call("POST", self.element(selector) + "/click")

    def type(self, selector, text):
        self.call("POST", self.element(selector) + "/value", {"text": text})

    def until(self, script, seconds=60):
        end = time.monotonic() + seconds
        while not self.run(script):
            if time.monotonic() > end:
                raise AssertionError(f"{script} after {seconds} s: {self.run('document.body.innerText')}")
            time.sleep(0.05)

    def picture(self, path):
        pathlib.Path(path).write_bytes(base64.b64decode(self.call("GET", self.session + "/screenshot")))


ANSWERS = "[...document.querySelectorAll('.message.assistant .text')].map(e => e.textContent)"
NOTES = "[...document.querySelectorAll('.message.assistant .speed')].map(e => e.textContent)"
GREEDY = {"temperature": 0, "tokens": 300}
IDLE = "document.getElementById('stop').hidden"


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.server = Served(TUFF, MODEL or serve_test.make_model(folder.name))
        cls.addClassCleanup(cls.server.__exit__)
        cls.url = cls.server.url
        if not MODEL:
            SlowProxy.upstream = cls.server.port
            proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), SlowProxy)
            proxy.daemon_threads = True
            threading.Thread(target=proxy.serve_forever, daemon=True).start()
            cls.addClassCleanup(proxy.server_close)
            cls.addClassCleanup(proxy.shutdown)
            cls.url = f"http://127.0.0.1:{proxy.server_address[1]}"

    def browser(self, *arguments, settings=None, **more):
        browser = Browser(*arguments, **more)
        self.addCleanup(browser.__exit__)
        browser.open(self.url)
        if settings:
            browser.run(f"localStorage.setItem('tuff.settings', {json.dumps(json.dumps(settings))})")
            browser.reload()
        browser.until(f"document.getElementById('model').textContent === {json.dumps(self.server.model)}")
        return browser

    def ask(self, b, text):
        b.type("#text", text + ENTER)
        b.until(f"!{IDLE} || {NOTES}.length > 0")

    def picture(self, b, name):
        if PICTURES:
            b.picture(pathlib.Path(PICTURES) / name)

    def test_ask_stream_stop_ask_again_reload(self):
        b = self.browser(1120, 760, settings=GREEDY)
        self.assertTrue(b.run("document.getElementById('send').disabled"), "there is nothing to send")
        SlowProxy.pause_s = 0.5  # however slow the browser is, the answer is not over
        self.ask(b, "Explain in simple words what a tensor is." if MODEL else "abc")
        b.until(f"({ANSWERS}[0] || '').length > {300 if MODEL else 3}")
        self.assertFalse(b.run(IDLE), "it streams")
        grown = b.run(f"{ANSWERS}[0].length")
        b.until(f"{ANSWERS}[0].length > {grown}")
        b.click("#stop")
        b.until(IDLE)
        SlowProxy.pause_s = 0.05
        self.assertIn("stopped", b.run(f"{NOTES}[0]"))
        stopped = b.run(f"{ANSWERS}[0]")
        time.sleep(0.3)
        self.assertEqual(b.run(f"{ANSWERS}[0]"), stopped, "nothing comes after it")
        self.ask(b, "Show me a loop in Python that prints the first ten square numbers." if MODEL else "de")
        b.until(f"{IDLE} && {ANSWERS}.length === 2", 120)
        self.assertRegex(b.run(f"{NOTES}[1]"), r"^\d+ tokens?, .*first after [\d.]+ s")
        shown = b.run(ANSWERS)
        self.picture(b, "serve-light.png")
        b.reload()
        b.until(f"{ANSWERS}.length === 2")
        self.assertEqual(b.run(ANSWERS), shown, "the browser keeps chats")
        b.click("#new")
        self.assertEqual(b.run(ANSWERS), [])
        self.ask(b, "Hello" if MODEL else "fg")
        b.until(IDLE, 120)
        self.assertEqual(b.run("document.querySelectorAll('#chats .open').length"), 2)
        b.click("#chats li:nth-child(2) .open")
        self.assertEqual(b.run(ANSWERS), shown)
        b.click("#chats li:nth-child(2) .drop")
        self.assertEqual(b.run("document.querySelectorAll('#chats .open').length"), 1)

    def test_texts_are_no_html(self):
        b = self.browser(900, 700)
        code = "**bold** `code` <b>x</b>\\n\\n```c\\nint a;\\n```\\nend"
        b.run(f"(document.body.append(Object.assign(document.createElement('div'), {{id: 'probe'}})), "
              f"document.getElementById('probe').append(rendered('{code}')))")
        self.assertEqual(b.run("document.getElementById('probe').innerHTML"),
                         '<p><strong>bold</strong> <code>code</code> &lt;b&gt;x&lt;/b&gt;</p>'
                         '<pre tabindex="0"><code>int a;</code></pre><p>end</p>')

    def test_on_a_phone_in_the_dark(self):
        b = self.browser(390, 780, dark=True, phone=True, settings=GREEDY)
        self.assertEqual(b.run("getComputedStyle(document.body).backgroundColor"), "rgb(24, 24, 22)")
        self.ask(b, "Give me three names for a grey kitten." if MODEL else "abc")
        if not MODEL:
            b.type("#text", ESCAPE)
        b.until(f"{IDLE} && {NOTES}.length === 1", 120)
        self.picture(b, "serve-dark-phone.png")
        self.assertLessEqual(b.run("document.documentElement.scrollWidth"), 390, "nothing sticks out")
        b.click("#menu")
        b.until("document.getElementById('side').classList.contains('shown')")
        self.assertEqual(b.run("document.getElementById('menu').getAttribute('aria-expanded')"), "true")
        b.click("#new")
        b.until("!document.getElementById('side').classList.contains('shown')")

    def test_errors_and_settings(self):
        b = self.browser(900, 700)
        b.click("#settings")
        b.type("#temperature", "1.5")
        b.type("#tokens", "4")
        b.click("#dialog .end button")
        self.ask(b, "Hello" if MODEL else "abc")
        b.until(f"{IDLE} && {NOTES}.length === 1", 120)
        self.assertIn("4 tokens", b.run(f"{NOTES}[0]"))
        b.run("document.getElementById('text').value = 'tuff cat '.repeat(6000)" if MODEL else
              "document.getElementById('text').value = 'ab'.repeat(40)")
        self.ask(b, " ")
        b.until("document.querySelector('.foot .error')")
        self.assertIn("--context", b.run("document.querySelector('.foot .error').textContent"))
        self.assertEqual(b.run("JSON.parse(localStorage.getItem('tuff.settings')).temperature"), 1.5)


if __name__ == "__main__":
    TUFF, MODEL, PICTURES = [*sys.argv[1:4], None, None, None][:3]
    serve_test.TUFF = TUFF
    if not shutil.which("chromium") or not shutil.which("chromedriver"):
        print("SKIPPED: the chat page was not tested: there is no chromium or chromedriver (scripts/page-test)")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
