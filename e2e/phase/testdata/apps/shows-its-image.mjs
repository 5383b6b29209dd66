// Responds with two files of the image.
import http from 'node:http';
import fs from 'node:fs';
http.createServer((q, r) => r.end('app ' + fs.readFileSync('/etc/marker') + fs.readFileSync('/etc/note'))).listen(3000, '0.0.0.0');
