// Prints `PASS <id>` and `FAIL <id>` lines, as the other suites of test/clients do; see case_report.py.
'use strict';

const {inspect} = require('node:util');

module.exports = async function* lineReporter(events) {
  let passed = 0;
  let failed = 0;
  for await (const {type, data} of events) {
    if (type === 'test:stdout') yield data.message;  // Such as a time.
    if (type !== 'test:pass' && type !== 'test:fail') continue;
    // Files and groups are reported like tests; ids begin with the name of the suite and a section.
    if (!/^(javascript|report) \d/.test(data.name)) continue;
    if (type === 'test:pass') {
      passed += 1;
      yield `PASS ${data.name}\n`;
    } else {
      failed += 1;
      const error = data.details?.error?.cause ?? data.details?.error;
      const text = inspect(error).split('\n').slice(0, 16);
      yield `FAIL ${data.name}\n${text.map((line) => `  | ${line}\n`).join('')}`;
    }
  }
  yield `   ${passed} passed, ${failed} failed\n`;
};
