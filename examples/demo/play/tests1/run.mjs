// Runs the tests of all phases, one after the other, and prints TAP.
import { existsSync } from 'node:fs';
import { App } from './app.mjs';

const quoted = (text) => `'${text.replaceAll("'", "''")}'`;

const tests = [];
for (let n = 1; existsSync(`phase${n}.mjs`); n++) {
  tests.push(...Object.entries((await import(`./phase${n}.mjs`)).default));
}
console.log(`1..${tests.length}`);
for (const [i, [contract, test]] of tests.entries()) {
  const app = new App(contract.split(' ')[0]);
  try {
    await test(app);
    console.log(`ok ${i + 1} - ${contract}`);
  } catch (seen) {
    process.exitCode = 1;
    console.log(`not ok ${i + 1} - ${contract}`);
    console.log(`  ---\n  input: ${quoted(app.sent.join(', then '))}\n  observed: ${quoted(seen.message)}\n  ...`);
  }
}
