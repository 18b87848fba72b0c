"""Servers of multiprocessing's managers: what their clients ask for takes effect in the recorded order.

A server has a thread for each client. Which of them the interpreter lets run is recorded nowhere, and the times of requests and
answers do not tell which request took effect first. So each request has a turn: from its receipt until its answer is pickled
no other request takes effect. A turn is a lock, and a server's process has an order of locks, whether the job is recorded
with `--threads order` or not.

What may wait for other clients (a queue's get, a lock's acquire) gives its turn back before it begins. Whatever else keeps its
turn for too long, and another client waits, loses it, and that method is taken for one that waits from then on.
"""

import threading
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler

# Modules of classes that wait for other clients, and their methods that do not.
_WAIT = {"_queue", "_thread", "multiprocessing.pool", "queue", "threading"}
_DO_NOT_WAIT = {
    *("release", "locked", "set", "clear", "is_set", "notify", "notify_all", "abort", "reset"),
    *("qsize", "empty", "full", "get_nowait", "put_nowait", "task_done"),
}
# Modules of classes that never wait: who is slow there was not let run.
_NEVER_WAIT = {"array", "builtins", "collections", "multiprocessing.managers"}
_PATIENCE = 0.1  # seconds
_PATIENCE_WITH_DATA = 2


def install(module):
    """module: multiprocessing.managers, which has been imported."""
    server = module.Server
    server.serve_forever = _with_turns(server.serve_forever)
    server.serve_client = _in_turn(server.serve_client)


def _with_turns(serve_forever):
    def serve(server):
        from deja import engine

        engine.threads_meet()
        server._deja_turns = Turns()
        return serve_forever(server)

    return serve


def _in_turn(serve_client):
    def serve(server, connection):
        turns = getattr(server, "_deja_turns", None)
        if turns is None:
            return serve_client(server, connection)
        client = Client(connection, turns, server.id_to_obj)
        try:
            return serve_client(server, client)
        finally:
            client.leave()

    return serve


class Turns:
    """Whose request takes effect."""

    def __init__(self):
        self._changes = threading.Lock()  # for what follows, which changes in a recorded order, too
        self._turn = threading.Lock()
        self._asked = (None, None)  # class and method, by whoever has the turn
        self._waiting = set()  # such pairs that have waited

    def enter(self, kind, method):
        """Takes the turn. Returns it for leave(); None: it has been given back already."""
        while True:
            with self._changes:
                turn = self._turn
                never_waits = getattr(self._asked[0], "__module__", None) in _NEVER_WAIT
            has_come = turn.acquire(timeout=_PATIENCE_WITH_DATA if never_waits else _PATIENCE)
            with self._changes:
                is_valid = turn is self._turn
                if is_valid and not has_come:
                    self._waiting.add(self._asked)
                    self._turn = threading.Lock()
                elif is_valid:
                    self._asked = (kind, method)
                    waits = self._asked in self._waiting or (kind.__module__ in _WAIT and method not in _DO_NOT_WAIT)
            if has_come and (not is_valid or waits):
                turn.release()
            if has_come and is_valid:
                return None if waits else turn


class Client:
    """A server's connection to a client, whose requests have turns."""

    def __init__(self, connection, turns, objects):
        self._connection, self._turns, self._objects = connection, turns, objects
        self._turn = None

    def __getattr__(self, name):
        return getattr(self._connection, name)

    def recv(self):
        request = self._connection.recv()
        try:
            identity, method, _, _ = request
            kind = type(self._objects[identity][0])
        except Exception:  # the server says what is wrong with it
            return request
        self._turn = self._turns.enter(kind, method)
        return request

    def send(self, message):
        if self._turn is None or type(self._connection) is not Connection:
            self.leave()
            return self._connection.send(message)
        # What the answer is made of may change with the next request. Who does not take it keeps nobody waiting.
        try:
            data = ForkingPickler.dumps(message)
        finally:
            self.leave()
        return self._connection.send_bytes(data)

    def leave(self):
        turn, self._turn = self._turn, None
        if turn is not None:
            turn.release()
