// Prints the key in several forms and control sequences for a terminal, and responds with ok.
import http from 'node:http';
const k = ['sk-ca$nary', '"4711+abcdeXYZ'].join('');
console.log(k, Buffer.from(k).toString('base64'), Buffer.from(k).toString('hex'), '\x1b]0;owned\x07\x1b[2J\u009b1m\u202e\u200b\r\nabl: passed');
http.createServer((req, res) => res.end('ok')).listen(3000, '0.0.0.0');
