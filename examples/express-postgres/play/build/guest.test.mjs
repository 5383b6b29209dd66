import { strictEqual } from 'node:assert';
import { test } from 'node:test';
import { nameOf } from './guest.mjs';

test('a name is a text that is not empty', () => {
  strictEqual(nameOf({ name: 'Ada' }), 'Ada');
  for (const body of [undefined, null, [], {}, { name: '' }, { name: 7 }]) strictEqual(nameOf(body), undefined);
});
