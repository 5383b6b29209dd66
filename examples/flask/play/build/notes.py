"""Notes, kept in memory."""

from flask import Flask, jsonify, request

app = Flask(__name__)
notes = []


@app.get("/health")
def health():
    return jsonify(status="ok")


@app.post("/notes")
def write():
    body = request.get_json(force=True, silent=True)
    text = body.get("text") if isinstance(body, dict) else None
    if not isinstance(text, str) or not text:
        return jsonify(error="a note needs a text"), 400
    notes.append(text)
    return jsonify(id=len(notes), text=text), 201


@app.get("/notes/<int:number>")
def read(number):
    if not 0 < number <= len(notes):
        return jsonify(error="there is no such note"), 404
    return jsonify(id=number, text=notes[number - 1])
