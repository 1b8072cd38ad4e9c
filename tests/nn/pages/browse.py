"""Opens an address in headless Chromium, runs a script in the page, and prints what it returns:

    python3 browse.py BROWSER ADDRESS SCRIPT [PICTURE.png WIDTH HEIGHT light|dark]

SCRIPT is the body of an async function. Messages of errors on the console, and exceptions, are
printed on stderr, and make the status 1; so does a script that is not done after CORNU_TEST_TIMEOUT
seconds. The browser is driven by its own protocol over a pipe
(https://chromedevtools.github.io/devtools-protocol/).
"""

import base64
import json
import os
import select
import subprocess
import sys
import tempfile
import time

PATIENCE_S = int(os.environ.get("CORNU_TEST_TIMEOUT", 120))


class Browser:
    def __init__(self, program, folder):
        to_browser, self._to = os.pipe()
        self._from, from_browser = os.pipe()
        os.set_inheritable(to_browser, True)
        os.set_inheritable(from_browser, True)
        # The browser reads descriptor 3 and writes 4.
        command = 'exec 3<&%d 4>&%d; exec "$@"' % (to_browser, from_browser)
        self._process = subprocess.Popen(
            ["bash", "-c", command, "bash", program, "--headless", "--no-sandbox", "--disable-gpu",
             "--remote-debugging-pipe", "--user-data-dir=" + folder, "about:blank"],
            close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self._bytes, self._last, self.session, self.errors = b"", 0, None, []
        self._until, self._loaded = time.monotonic() + PATIENCE_S, False

    def _receive(self, what):
        while b"\0" not in self._bytes:
            left = max(0, self._until - time.monotonic())
            if not select.select([self._from], [], [], left)[0]:
                raise SystemExit("%s: not done after %d s" % (what, PATIENCE_S))
            part = os.read(self._from, 1 << 16)
            if not part:
                raise SystemExit("the browser has ended")
            self._bytes += part
        text, self._bytes = self._bytes.split(b"\0", 1)
        message = json.loads(text)
        name, said = message.get("method"), message.get("params", {})
        if name == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(said["exceptionDetails"])[:500])
        elif name == "Log.entryAdded" and said["entry"]["level"] == "error":
            self.errors.append(said["entry"]["text"])
        elif name == "Runtime.consoleAPICalled" and said["type"] == "error":
            self.errors.append(json.dumps(said["args"])[:500])
        elif name == "Page.loadEventFired":
            self._loaded = True
        return message

    def call(self, method, **parameters):
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            reply = self._receive(method)
            if reply.get("id") == self._last:
                if "error" in reply:
                    raise SystemExit("%s: %s" % (method, reply["error"]))
                return reply["result"]

    def open(self, address):
        self._loaded = False
        self.call("Page.navigate", url=address)
        while not self._loaded:
            self._receive("the page " + address)

    def end(self):
        self.session, self._until = None, time.monotonic() + 10
        try:
            self.call("Browser.close")
            self._process.wait(10)
        except (OSError, SystemExit, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()


def browse(program, address, script, picture=None, width="1280", height="900", scheme="light"):
    with tempfile.TemporaryDirectory() as folder:
        browser = Browser(program, folder)
        try:
            target = browser.call("Target.createTarget", url="about:blank")["targetId"]
            browser.session = browser.call("Target.attachToTarget", targetId=target,
                                           flatten=True)["sessionId"]
            for domain in ("Runtime", "Log", "Page"):
                browser.call(domain + ".enable")
            browser.call("Emulation.setDeviceMetricsOverride", width=int(width),
                         height=int(height), deviceScaleFactor=1, mobile=False)
            browser.call("Emulation.setEmulatedMedia", features=[
                {"name": "prefers-color-scheme", "value": scheme}])
            browser.open(address)
            result = browser.call("Runtime.evaluate", awaitPromise=True, returnByValue=True,
                                  expression="(async () => { %s })()" % script)
            if "exceptionDetails" in result:
                browser.errors.append(json.dumps(result["exceptionDetails"])[:500])
            if picture:
                shot = browser.call("Page.captureScreenshot")["data"]
                with open(picture, "wb") as file:
                    file.write(base64.b64decode(shot))
        finally:
            browser.end()
    print(result["result"].get("value"))
    for error in browser.errors:
        print(error, file=sys.stderr)
    return 1 if browser.errors else 0


if __name__ == "__main__":
    sys.exit(browse(*sys.argv[1:]))
