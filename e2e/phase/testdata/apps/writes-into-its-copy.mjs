// Writes into its copy of the source and deletes there, and responds with the files that it sees.
import http from 'node:http';
import fs from 'node:fs';
fs.writeFileSync('written.txt', 'by the app');
fs.appendFileSync('kept.txt', ' and the app');
fs.rmSync('deps/d7', { recursive: true });
http.createServer((req, res) => {
  const dirs = fs.readdirSync('deps').length;
  res.end(['ok', dirs, fs.readFileSync('deps/d8/f8').length, fs.readFileSync('kept.txt', 'utf8'), fs.readlinkSync('link'),
    fs.statSync('run.sh').mode & 0o111 ? 'executable' : 'plain', 'git ' + fs.readdirSync('.git').length].join(' '));
}).listen(3000, '0.0.0.0');
