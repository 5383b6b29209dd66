"""The tests of phase 1, a function a contract. Prints TAP."""

import json
import os
import urllib.error
import urllib.request


def ask(method, path, status, body=None):
    data = None if body is None else body.encode()
    request = urllib.request.Request(os.environ["ABL_APP_URL"] + path, data, {"Content-Type": "application/json"}, method=method)
    try:
        answer = urllib.request.urlopen(request, timeout=10)
    except urllib.error.HTTPError as error:
        answer = error
    assert answer.status == status, f"{method} {path}: status {answer.status}"
    return json.load(answer)


def write(text):
    note = ask("POST", "/notes", 201, json.dumps({"text": text}))
    assert set(note) == {"id", "text"} and note["text"] == text and isinstance(note["id"], int), note
    return note


def refused(method, path, status, body=None):
    error = ask(method, path, status, body)["error"]
    assert isinstance(error, str) and error, error


def healthy():
    got = ask("GET", "/health", 200)
    assert got == {"status": "ok"}, got


def written():
    assert write("milk")["id"] != write("bread, and ü")["id"]


def no_note():
    for body in ["", "{", "null", "[]", "{}", '{"text": ""}', '{"text": 7}']:
        refused("POST", "/notes", 400, body)


def found():
    note = write("eggs")
    got = ask("GET", f"/notes/{note['id']}", 200)
    assert got == note, got


def not_found():
    refused("GET", "/notes/999999", 404)


tests = {"P1.C1": healthy, "P1.C2": written, "P1.C3": no_note, "P1.C4": found, "P1.C5": not_found}
print(f"1..{len(tests)}")
for number, (contract, test) in enumerate(tests.items(), 1):
    try:
        test()
        print(f"ok {number} - {contract}")
    except Exception as seen:
        print(f"not ok {number} - {contract}\n# {' '.join(str(seen).split())}")
