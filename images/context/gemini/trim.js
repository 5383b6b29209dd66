// Removes from the CLI's bundle what no file of it names: the package carries
// spare copies of its chunks, pictures for its manual and a browser driver
// that abl's settings switch off.
'use strict';
const fs = require('fs');
const path = require('path');

const bundle = process.argv[2];
const chunks = fs.readdirSync(bundle).filter((name) => name.endsWith('.js'));
const kept = new Set();
const queue = ['gemini.js'];
while (queue.length > 0) {
  const name = queue.pop();
  if (kept.has(name)) continue;
  kept.add(name);
  const text = fs.readFileSync(path.join(bundle, name), 'utf8');
  const words = new Set(text.match(/[\w.-]+\.js\b/g) || []);
  queue.push(...chunks.filter((other) => words.has(other)));
}
for (const name of chunks) {
  if (!kept.has(name)) fs.rmSync(path.join(bundle, name));
}
for (const name of ['bundled', 'docs/assets']) {
  fs.rmSync(path.join(bundle, name), { recursive: true, force: true });
}
