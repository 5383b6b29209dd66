// The smallest app: a service that responds to every request.
import http from 'node:http';
http.createServer((req, res) => res.end('ok')).listen(3000, '0.0.0.0');
