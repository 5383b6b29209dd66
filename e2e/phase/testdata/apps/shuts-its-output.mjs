// Removes all permissions from its output files, and responds.
import fs from 'node:fs';
import http from 'node:http';
for (const f of fs.readdirSync('/abl/out')) fs.chmodSync('/abl/out/' + f, 0);
http.createServer((req, res) => res.end('ok')).listen(3000, '0.0.0.0');
