import http from 'node:http';
import tiny from 'tiny';
http.createServer((req, res) => res.end(tiny)).listen(3000, '0.0.0.0');
