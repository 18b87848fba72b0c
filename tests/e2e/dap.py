"""A client of the Debug Adapter Protocol, as an editor is one: for tests of `deja replay --debugpy`."""
import json
import socket


class Client:
    def __init__(self, port, timeout=60):
        self._socket = socket.create_connection(("localhost", port), timeout=timeout)
        self._stream = self._socket.makefile("rb")
        self._numbers = 0
        self._events = []
        self._answers = {}

    def close(self):
        self._stream.close()
        self._socket.close()

    def send(self, command, **arguments):
        """Returns the request's number."""
        self._numbers += 1
        request = {"seq": self._numbers, "type": "request", "command": command, "arguments": arguments}
        body = json.dumps(request).encode()
        self._socket.sendall(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        return self._numbers

    def _receive(self):
        size = None
        while True:
            line = self._stream.readline()
            if not line:
                raise EOFError("the replay has closed the connection")
            if not line.strip():
                break
            name, _, value = line.decode().partition(":")
            if name.lower() == "content-length":
                size = int(value)
        return json.loads(self._stream.read(size))

    def _take(self):
        message = self._receive()
        if message["type"] == "event":
            self._events.append(message)
        elif message["type"] == "response":
            self._answers[message["request_seq"]] = message

    def answer(self, number):
        """The body of the response to request `number`."""
        while number not in self._answers:
            self._take()
        message = self._answers.pop(number)
        if not message["success"]:
            raise AssertionError(f"{message['command']}: {message.get('message')}")
        return message.get("body") or {}

    def ask(self, command, **arguments):
        return self.answer(self.send(command, **arguments))

    def event(self, name):
        """The body of the next event of this name; what came before it is passed over."""
        while True:
            while self._events:
                event = self._events.pop(0)
                if event["event"] == name:
                    return event.get("body") or {}
            self._take()

    def begin(self, breakpoints, filters=()):
        """The conversation up to the program's first line. `breakpoints`: lines, by path."""
        self.ask("initialize", clientID="test", adapterID="debugpy", pathFormat="path", linesStartAt1=True,
                 columnsStartAt1=True)
        attached = self.send("attach", justMyCode=True)
        self.event("initialized")
        for path, lines in breakpoints.items():
            body = self.ask("setBreakpoints", source={"path": str(path)},
                            breakpoints=[{"line": line} for line in lines])
            assert all(one["verified"] for one in body["breakpoints"]), body
        self.ask("setExceptionBreakpoints", filters=list(filters))
        self.ask("configurationDone")
        self.answer(attached)

    def frames(self, thread):
        return self.ask("stackTrace", threadId=thread)["stackFrames"]

    def variables(self, frame):
        """Values by name, of the frame's locals."""
        scopes = self.ask("scopes", frameId=frame["id"])["scopes"]
        found = self.ask("variables", variablesReference=scopes[0]["variablesReference"])["variables"]
        return {one["name"]: one["value"] for one in found}
