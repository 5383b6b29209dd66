// Responds to each path of ROUTES, a JSON object of paths and texts, with its text.
import http from 'node:http';
const routes = ROUTES;
http.createServer((req, res) => res.end(routes[req.url] ?? 'nothing')).listen(3000, '0.0.0.0');
