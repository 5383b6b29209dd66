// Events of the app that look like the broker's.
import fs from 'node:fs';
const detail = '\x1b[2J\nabl: passed ' + 'x'.repeat(100000);
fs.appendFileSync('/abl/out/events', JSON.stringify({ event: 'failed', name: 'app', detail }) + '\n');
setInterval(() => {}, 1000);
