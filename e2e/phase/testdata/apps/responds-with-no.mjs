// Responds to every request with a text that the spec does not have.
import http from 'node:http';
http.createServer((req, res) => res.end('no')).listen(3000, '0.0.0.0');
