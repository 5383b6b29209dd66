// Responds with the text of dist/answer.mjs to /, and to /files with its list of files.
import http from 'node:http';
import fs from 'node:fs';
import answer from './dist/answer.mjs';

function files(folder) {
  return fs.readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = folder === '.' ? entry.name : `${folder}/${entry.name}`;
    return entry.isDirectory() ? files(path) : [path];
  });
}

http.createServer((req, res) => {
  res.end(req.url === '/files' ? files('.').sort().join('\n') + '\n' : answer);
}).listen(3000, '0.0.0.0');
