// Turns the TAP of a run into what a Verifier leaves: failed_specs.md when a
// contract failed, none when all are ok, and the run report.
// Usage: node tell.js TAP REPORT PHASE
const fs = require('node:fs');
const path = require('node:path');

const [tap, report, phase] = process.argv.slice(2);
const results = [];
for (const line of fs.readFileSync(tap, 'utf8').split('\n')) {
  const result = /^(not )?ok \d+ - (P\d+\.C\d+) (.*)$/.exec(line);
  const detail = /^  (input|observed): '(.*)'$/.exec(line);
  if (result) results.push({ ok: !result[1], id: result[2], spec: result[3] });
  if (detail) results.at(-1)[detail[1]] = detail[2].replaceAll("''", "'");
}
const failed = results.filter((r) => !r.ok);

if (failed.length === 0) {
  fs.rmSync('failed_specs.md', { force: true });
} else {
  const entries = failed.map((r) => `SPEC: ${r.spec}\nINPUT: ${r.input}\nOBSERVED: ${r.observed}\n`);
  fs.writeFileSync('failed_specs.md', entries.join('\n'));
}

const lines = [
  `# Verification of phase ${phase}`,
  '',
  `Result: ${failed.length ? 'fail' : 'pass'}, ${results.length - failed.length} ok, ${failed.length} not ok.`,
  '',
  '## Contracts',
  '',
  ...results.map((r) => `- ${r.id} ${r.ok ? 'ok' : 'not ok'}: ${r.spec}`),
];
if (failed.length) {
  lines.push('', '## Failures', '', ...failed.map((r) => `- ${r.id}: ${r.input} gave ${r.observed}`));
}
fs.mkdirSync(path.dirname(report), { recursive: true });
fs.writeFileSync(report, lines.join('\n') + '\n');
