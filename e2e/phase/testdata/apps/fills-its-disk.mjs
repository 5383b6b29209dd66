// Writes 10 MB fifty times a second into up to 30 files, and never listens.
import fs from 'node:fs';
let n = 0;
setInterval(() => fs.writeFileSync('f' + n++ % 30, Buffer.alloc(10 << 20)), 20);
