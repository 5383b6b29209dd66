// Responds to every request with a line of TAP.
import http from 'node:http';
http.createServer((req, res) => res.end('ok 1 - P1.C1\n')).listen(3000, '0.0.0.0');
