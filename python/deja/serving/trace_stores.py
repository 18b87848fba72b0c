"""The store of a TracePG: what the recorded rank read there, and what the code puts there itself."""

import torch.distributed as dist

from deja.trace import TraceError


class TraceStore(dist.Store):
    """Answers at once. There is no other rank to wait for."""

    def __init__(self, server):
        super().__init__()
        self._deja_server, self._deja_values = server, {}

    def set(self, key, value):
        self._deja_values[key] = value.encode() if isinstance(value, str) else bytes(value)

    def get(self, key):
        recorded = self._recorded("get", key)
        if recorded is not None:
            return recorded
        if key not in self._deja_values:
            raise TraceError(f"reading the store: {key}: the recorded rank never read that key")
        return self._deja_values[key]

    def add(self, key, amount):
        recorded = self._recorded("add", key)
        if recorded is not None:
            return int(recorded)
        value = int(self._deja_values.get(key, b"0")) + amount
        self._deja_values[key] = str(value).encode()
        return value

    def compare_set(self, key, expected, desired):
        recorded = self._recorded("compare_set", key)
        if recorded is not None:
            return recorded
        if self._deja_values.get(key, b"") == expected.encode():
            self.set(key, desired)
        return self._deja_values.get(key, b"")

    def check(self, keys):
        return all(key in self._deja_values or self._recorded("get", key) is not None for key in keys)

    def wait(self, keys, *timeout):
        pass

    def delete_key(self, key):
        return self._deja_values.pop(key, None) is not None

    def num_keys(self):
        return len(self._deja_values)

    def set_timeout(self, timeout):
        pass

    def _recorded(self, function, key):
        """What the recording answered; None: nothing. torch's own prefixes differ between its releases."""
        for name in (key, key.rsplit("/", 1)[-1]):
            answer, _ = self._deja_server.ask({"store": f"c10d_store_{function}", "key": name})
            if answer["value"] is not None:
                return bytes.fromhex(answer["value"])
        return None
