"""A small server that speaks the part of the Hub's protocol that uploading and loading a model needs."""

import base64
import contextlib
import hashlib
import json
import re
import socket
import struct
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SHA = "0123456789abcdef0123456789abcdef01234567"


class FakeHub:
    """`faults` maps a part of a request's path to what goes wrong there, once each: a status, or "reset"."""

    def __init__(self, faults=None, token="hf_" + "x" * 30):
        self.token = token
        self.faults = {path: list(what) for path, what in (faults or {}).items()}
        self.requests, self.repos, self.objects, self.pull_requests = [], {}, {}, []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Handler,), {"hub": self}))
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, args=[0.01], daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def commit(self, repo, lines, pull_request):
        files = self.repos[repo]["files"] if not pull_request else {}
        for line in lines:
            if line["key"] == "file":
                files[line["value"]["path"]] = base64.b64decode(line["value"]["content"])
            elif line["key"] == "lfsFile":
                files[line["value"]["path"]] = self.objects[line["value"]["oid"]]
        if pull_request:
            self.pull_requests.append(files)
        address = f"{self.url}/{repo}"
        return {"commitUrl": f"{address}/commit/{SHA}", "commitOid": SHA, "pullRequestUrl": f"{address}/discussions/1"}


class Handler(BaseHTTPRequestHandler):
    hub: FakeHub

    def log_message(self, *_):
        pass

    def body(self):
        if self.headers.get("Transfer-Encoding") == "chunked":
            parts = []
            while size := int(self.rfile.readline(), 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def answer(self, content=b"", status=200, **headers):
        if not isinstance(content, bytes):
            content = json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def handle_request(self):
        path, _, query = self.path.partition("?")
        body = self.body()
        self.hub.requests.append((self.command, path))
        for part, what in self.hub.faults.items():
            if part in path and what:
                fault = what.pop(0)
                if fault == "reset":  # the connection breaks without an answer
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    self.connection.close()
                    self.close_connection = True
                    return None
                return self.answer({"error": "out of order"}, fault)
        if not path.startswith("/lfs/") and self.headers.get("Authorization") != f"Bearer {self.hub.token}":
            return self.answer({"error": "Invalid credentials"}, 401)
        for pattern, act in ROUTES:
            if match := re.fullmatch(pattern, f"{self.command} {path}"):
                return act(self, body, query, **match.groupdict())
        return self.answer({"error": "not found"}, 404)

    do_GET = do_HEAD = do_POST = do_PUT = handle_request

    def finish(self):
        with contextlib.suppress(OSError):
            super().finish()

    def create(self, body, query):
        given = json.loads(body)
        repo = f"{given['organization']}/{given['name']}"
        if repo in self.hub.repos:
            return self.answer({"error": "exists", "url": f"{self.hub.url}/{repo}"}, 409)
        self.hub.repos[repo] = {"files": {}, "visibility": given.get("visibility")}
        return self.answer({"url": f"{self.hub.url}/{repo}"})

    def validate(self, body, query):
        errors = [] if json.loads(body)["content"].startswith("---\n") else [{"message": "no metadata"}]
        return self.answer({"errors": errors, "warnings": []}, 400 if errors else 200)

    def preupload(self, body, query, repo):
        if repo not in self.hub.repos:
            return self.answer({"error": "no such repository"}, 404, X_Error_Code="RepoNotFound")
        files = []
        for file in json.loads(body)["files"]:
            mode = "lfs" if file["path"].endswith(".safetensors") else "regular"
            files.append({"path": file["path"], "uploadMode": mode, "shouldIgnore": False, "oid": None})
        return self.answer({"files": files})

    def lfs_batch(self, body, query, repo):
        objects = json.loads(body)["objects"]
        for item in objects:
            item["actions"] = {"upload": {"href": f"{self.hub.url}/lfs/{item['oid']}"}}
        return self.answer({"objects": objects, "transfer": "basic"})

    def lfs_upload(self, body, query, oid):
        if hashlib.sha256(body).hexdigest() != oid:
            return self.answer({"error": "wrong content"}, 400)
        self.hub.objects[oid] = body
        return self.answer()

    def commit(self, body, query, repo):
        lines = [json.loads(line) for line in body.splitlines()]
        return self.answer(self.hub.commit(repo, lines, "create_pr=1" in query))

    def info(self, body, query, repo):
        if repo not in self.hub.repos:
            return self.answer({"error": "no such repository"}, 404, X_Error_Code="RepoNotFound")
        siblings = [{"rfilename": name} for name in self.hub.repos[repo]["files"]]
        return self.answer({"id": repo, "sha": SHA, "siblings": siblings, "tags": [], "private": False, "downloads": 0})

    def tree(self, body, query, repo):
        files = self.hub.repos[repo]["files"]
        return self.answer(
            [{"type": "file", "path": name, "size": len(data), "oid": SHA} for name, data in files.items()]
        )

    def resolve(self, body, query, repo, name):
        content = self.hub.repos[repo]["files"].get(name)
        if content is None:
            return self.answer(b"", 404, X_Error_Code="EntryNotFound", X_Repo_Commit=SHA)
        return self.answer(content, ETag=f'"{hashlib.sha1(content).hexdigest()}"', X_Repo_Commit=SHA)


REPO = r"(?P<repo>[\w.-]+/[\w.-]+)"
ROUTES = [
    (r"POST /api/repos/create", Handler.create),
    (r"POST /api/validate-yaml", Handler.validate),
    (rf"POST /api/models/{REPO}/preupload/\w+", Handler.preupload),
    (rf"POST /api/models/{REPO}/commit/\w+", Handler.commit),
    (rf"GET /api/models/{REPO}(?:/revision/\w+)?", Handler.info),
    (rf"GET /api/models/{REPO}/tree/\w+(?:/.*)?", Handler.tree),
    (rf"POST /{REPO}\.git/info/lfs/objects/batch", Handler.lfs_batch),
    (r"PUT /lfs/(?P<oid>\w+)", Handler.lfs_upload),
    (rf"(?:GET|HEAD) /{REPO}/resolve/\w+/(?P<name>.+)", Handler.resolve),
]
