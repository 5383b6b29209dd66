import unittest

import notes


class Notes(unittest.TestCase):
    def test_written_and_read(self):
        client = notes.app.test_client()
        note = client.post("/notes", json={"text": "milk"}).get_json()
        self.assertEqual(client.get(f"/notes/{note['id']}").get_json(), note)
        self.assertEqual(client.get("/notes/9999").status_code, 404)
