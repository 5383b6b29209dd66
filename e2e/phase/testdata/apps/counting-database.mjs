// A database that counts its connections and returns its seed.
import net from 'node:net';
import fs from 'node:fs';
const seed = fs.readFileSync('/data/seed.txt', 'utf8').trim();
fs.appendFileSync('/data/seed.txt', ' again');
let seen = 0;
net.createServer((c) => { seen++; c.on('error', () => {}); c.on('data', () => c.end(process.env.MOTTO + ' ' + seen + ' ' + (process.env.FLAVOUR ?? 'none') + ' ' + seed)); }).listen(4000);
