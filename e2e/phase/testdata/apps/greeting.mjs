// A service with a separate module.
import http from 'node:http';
import { word } from './lib/word.mjs';
http.createServer((req, res) => res.end(word)).listen(3000, '0.0.0.0');
