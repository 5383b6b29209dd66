// Responds only on the container's loopback.
import http from 'node:http';
http.createServer((req, res) => res.end('ok')).listen(3000, '127.0.0.1');
