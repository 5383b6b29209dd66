// Responds with the number of requests since its start.
import http from 'node:http';
let n = 0;
http.createServer((req, res) => res.end(req.url === '/' ? 'ok ' + process.env.FLAVOUR + ' ' + ++n : 'up')).listen(3000, '0.0.0.0');
