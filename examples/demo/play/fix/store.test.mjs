import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import test from 'node:test';
import { Store } from './store.mjs';

const file = () => path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'links-')), 'data', 'links.json');

test('a link is found by its code and by its address', () => {
  const store = new Store(file());
  const link = store.add('https://example.com/a');
  assert.match(link.code, /^[a-z0-9]{6}$/);
  assert.equal(store.byCode(link.code), link);
  assert.equal(store.byURL('https://example.com/a'), link);
  assert.equal(store.byCode('nobody'), undefined);
});

test('links outlive the process', () => {
  const name = file();
  const { code } = new Store(name).add('https://example.com/b');
  assert.equal(new Store(name).byCode(code).url, 'https://example.com/b');
});

test('hits outlive the process', () => {
  const name = file();
  const store = new Store(name);
  const { code } = store.add('https://example.com/c');
  store.hit(code);
  store.hit(code);
  assert.equal(new Store(name).byCode(code).hits, 2);
});
