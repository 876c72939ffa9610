"""A server that takes the requests of Qdrant that this package sends, and no others: Qdrant's own client in memory
answers them. `FakeQdrant.instead` and `after` give other answers than a server would."""

import json
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

from qdrant_client import QdrantClient, models

DONE = {"operation_id": 0, "status": "completed"}


class FakeQdrant:
    """The state of a server. `calls` are the requests that came: method and path.

    instead: gives the bytes that are answered to the n-th call since `calls` was emptied, or None. after: the same,
    once the call was carried out.
    """

    def __init__(self):
        self.client = QdrantClient(":memory:", force_disable_check_same_thread=True)
        self.calls = []
        self.instead = self.after = lambda number: None
        self.lock = threading.Lock()

    def answer(self, method, path, content):
        """Status and body of the answer."""
        with self.lock:
            self.calls.append((method, path))
            number = len(self.calls)
            if (instead := self.instead(number)) is not None:
                return 200, instead
            name, _, action = path.removeprefix("/collections/").partition("/")
            there = self.client.collection_exists(unquote(name))
            if not there and (method, action) not in (("GET", "exists"), ("PUT", "")):
                return 404, {"status": {"error": f"Not found: Collection `{name}` doesn't exist!"}, "time": 0.0}
            if there and (method, action) == ("PUT", ""):
                return 409, {"status": {"error": f"Wrong input: Collection `{name}` already exists!"}, "time": 0.0}
            result = self._answer(f"{method} {action}".strip(), unquote(name), json.loads(content or b"{}"))
            return 200, self.after(number) or {"result": result, "status": "ok", "time": 0.0}

    def _answer(self, asked, name, body):
        client = self.client
        if asked == "GET exists":
            return {"exists": client.collection_exists(name)}
        if asked == "GET":
            return as_json(client.get_collection(name))
        if asked == "PUT":
            made = models.CreateCollection(**body)
            return client.create_collection(
                name, vectors_config=made.vectors, sparse_vectors_config=made.sparse_vectors
            )
        if asked == "PUT index":
            return DONE
        if asked == "PUT points":
            client.upsert(name, [models.PointStruct(**point) for point in body["points"]])
            return DONE
        if asked == "POST points/payload":
            client.set_payload(name, body["payload"], points=body["points"])
            return DONE
        if asked == "POST points/delete":
            client.delete(name, models.PointIdsList(points=body["points"]))
            return DONE
        if asked == "POST points":
            return as_json(client.retrieve(name, body["ids"], body["with_payload"], body.get("with_vector", False)))
        passing = body.get("filter") and models.Filter(**body["filter"])
        if asked == "POST points/count":
            return as_json(client.count(name, passing, body["exact"]))
        if asked == "POST points/scroll":
            wanted = body["with_payload"], body["with_vector"]
            points, after = client.scroll(name, passing, body["limit"], None, body.get("offset"), *wanted)
            return {"points": as_json(points), "next_page_offset": after}
        if asked == "POST points/query":
            return as_json(searched(client, name, [body])[0])
        assert asked == "POST points/query/batch", asked
        return as_json(searched(client, name, body["searches"]))


def searched(client, name, searches):
    """Without the settings of an index, which a client in memory has none of."""
    return client.query_batch_points(name, [models.QueryRequest(**{**one, "params": None}) for one in searches])


def as_json(value):
    return [as_json(one) for one in value] if isinstance(value, list) else value.model_dump(mode="json")


@contextmanager
def fake_qdrant():
    """A running server: its address, and its state."""
    state = FakeQdrant()

    class Handler(BaseHTTPRequestHandler):
        disable_nagle_algorithm = True

        def _reply(self):
            content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, answer = state.answer(self.command, re.sub("/+", "/", urlsplit(self.path).path), content)
            body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PUT = do_POST = _reply

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
    try:
        yield f"qdrant:http://127.0.0.1:{server.server_port}", state
    finally:
        server.shutdown()
        server.server_close()
