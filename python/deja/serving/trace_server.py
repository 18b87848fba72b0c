"""The conversation with `deja serve`: a line of JSON and bytes each way (cli/serve/operation_server.h)."""

import json
import subprocess
import threading

from deja.trace import TraceError, find_program


class TraceServer:
    """One rank's operations and store answers. Any thread."""

    def __init__(self, path, rank, program=None, trust=False):
        words = [program or find_program(), "serve", path, "--rank", str(rank)] + ["--trust"] * trust
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self._lock = threading.Lock()
        self.greeting, _ = self._receive()

    def ask(self, words, pieces=()):
        """The answer to a request and its bytes. pieces: buffers that go along, one after the other."""
        size = sum(len(piece) for piece in pieces)
        with self._lock:
            if self._process.stdin.closed:
                raise TraceError("serving: the trace is closed")
            try:
                self._process.stdin.write(json.dumps({**words, "bytes": size}).encode() + b"\n")
                for piece in pieces:
                    self._process.stdin.write(piece)
                self._process.stdin.flush()
            except BrokenPipeError:
                pass  # _receive says why
            answer, data = self._receive()
        if "error" in answer:
            raise TraceError(f"serving: {answer['error']}")
        return answer, data

    def close(self):
        with self._lock:
            for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
                if not stream.closed:
                    stream.close()
            self._process.wait()

    def _receive(self):
        line = self._process.stdout.readline()
        answer = json.loads(line) if line else None
        data = self._process.stdout.read(answer["bytes"]) if answer and answer["bytes"] else b""
        if answer is None or len(data) != answer["bytes"]:
            said = self._process.stderr.read().decode(errors="replace").strip()
            code = self._process.wait()
            raise TraceError(said.removeprefix("deja: ") if hasattr(said, "removeprefix") and said
                             else said or f"deja serve: exit {code}")
        return answer, data
