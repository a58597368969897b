"""A stand-in for `holdfast.provider.local.serve`: the same pipe, real HTTP, no model.

Run as a program: `serving.py HOW`. `good` answers one word, `crash` dies at the first request; the others
fail at their start, each in its own way.
"""

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

ANSWER = (
    b'data: {"choices":[{"delta":{"content":"Ahoy"},"index":0}]}\n\n'
    b'data: {"choices":[{"delta":{},"finish_reason":"stop","index":0}],'
    b'"usage":{"prompt_tokens":3,"completion_tokens":1}}\n\ndata: [DONE]\n\n'
)


def main(how: str) -> None:
    order = json.loads(sys.stdin.readline())
    match how:
        case "dead":
            os._exit(7)
        case "mute":
            sys.stdin.read()
            os._exit(0)
        case "garbled":
            say("no JSON")
        case "broken":
            say(json.dumps({"type": "broken", "why": "the file is odd"}))
        case "bare":
            say(json.dumps({"type": "broken", "why": "no module", "extra": True}))
        case _:
            server = ThreadingHTTPServer(("127.0.0.1", 0), handler(order["key"], crash=how == "crash"))
            Thread(target=server.serve_forever, daemon=True).start()
            say(json.dumps({"type": "ready", "port": server.server_port}))
            sys.stdin.read()
            os._exit(0)


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def handler(key: str, *, crash: bool) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            if crash:
                os._exit(9)
            self.rfile.read(int(self.headers["content-length"]))
            known = self.headers["authorization"] == f"Bearer {key}"
            self.send_response(200 if known else 401)
            self.send_header("content-type", "text/event-stream" if known else "application/json")
            self.end_headers()
            self.wfile.write(ANSWER if known else b'{"error":{"message":"who are you?"}}')

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler


if __name__ == "__main__":
    main(sys.argv[1])
