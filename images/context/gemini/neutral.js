// Makes the CLI pass by what stands in the folder that it works in.
//
// It takes a GEMINI.md there for orders, and .gemini for settings, some of which
// name programs that it starts. Settings of abl's can overrule the ones that abl
// knows of, and cannot take the rest away. A role takes instructions only from abl's
// prompt, and not from files of a workspace, so both names lead
// to a place that is not there and that nobody can make. And it takes an @ in the
// prompt for the name of a file, which it adds while it rewrites the prompt: the
// prompt stays as it is.
'use strict';
const fs = require('fs');
const path = require('path');

const dir = process.argv[2];
const nowhere = '/abl/none';
const changes = [
  [/DEFAULT_CONTEXT_FILENAME = "GEMINI\.md"/g, 'DEFAULT_CONTEXT_FILENAME = "' + '../'.repeat(40) + nowhere.slice(1) + '/GEMINI.md"'],
  [/\w+\.join\(this\.targetDir, GEMINI_DIR\)/g, JSON.stringify(nowhere)],
  [/`\(\?<!\\+\)@\$\{AT_COMMAND_PATH_REGEX_SOURCE\}`/g, '`(?!)`'],
];
const found = changes.map(() => 0);

for (const name of fs.readdirSync(dir)) {
  if (!name.endsWith('.js')) continue;
  const file = path.join(dir, name);
  const was = fs.readFileSync(file, 'utf8');
  let text = was;
  changes.forEach(([from, to], i) => {
    text = text.replace(from, () => {
      found[i]++;
      return to;
    });
  });
  if (text !== was) fs.writeFileSync(file, text);
}
if (found.includes(0)) {
  console.error('neutral.js: this version of the CLI finds its files in another way: ' + found);
  process.exit(1);
}
