// Keeps the links in memory and in one file.
import fs from 'node:fs';
import path from 'node:path';
import { randomInt } from 'node:crypto';

const letters = 'abcdefghijklmnopqrstuvwxyz0123456789';

export class Store {
  #file;
  #links = new Map();
  #codes = new Map();

  constructor(file) {
    this.#file = file;
    fs.mkdirSync(path.dirname(file), { recursive: true });
    if (!fs.existsSync(file)) return;
    for (const link of JSON.parse(fs.readFileSync(file, 'utf8'))) this.#remember(link);
  }

  byCode(code) {
    return this.#links.get(code);
  }

  byURL(url) {
    return this.#links.get(this.#codes.get(url));
  }

  add(url) {
    const link = { code: this.#newCode(), url, hits: 0 };
    this.#remember(link);
    this.#save();
    return link;
  }

  hit(code) {
    const link = this.#links.get(code);
    if (!link) return undefined;
    link.hits++;
    this.#save();
    return link;
  }

  #remember(link) {
    this.#links.set(link.code, link);
    this.#codes.set(link.url, link.code);
  }

  #newCode() {
    for (;;) {
      const code = Array.from({ length: 6 }, () => letters[randomInt(letters.length)]).join('');
      if (!this.#links.has(code) && code !== 'health') return code;
    }
  }

  // A kill in the middle leaves the old file or the new one, never half of one.
  #save() {
    const draft = this.#file + '.new';
    const fd = fs.openSync(draft, 'w');
    fs.writeFileSync(fd, JSON.stringify([...this.#links.values()]));
    fs.fsyncSync(fd);
    fs.closeSync(fd);
    fs.renameSync(draft, this.#file);
  }
}
