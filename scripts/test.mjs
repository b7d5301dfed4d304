// `npm test`: installs missing dependencies and runs every test. Standard output ends with a line for each slow file
// and each failed test, and `N passed, N failed`. Arguments go to jest: `npm test -- test/unit/cli`.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { ensureInstalled, projectEnv, projectNode, run } from './toolchain.mjs';

/** A test file that takes as long is named: the whole run waits for the slowest. */
const SLOW_S = 60;

await ensureInstalled();
const node = projectNode();
const scratch = mkdtempSync(join(tmpdir(), 'ebb-test-'));
const results = join(scratch, 'results.json');
const code = await run(
  node,
  [
    '--experimental-vm-modules',
    '--disable-warning=ExperimentalWarning',
    join('node_modules', 'jest', 'bin', 'jest.js'),
    '--json',
    `--outputFile=${results}`,
    ...process.argv.slice(2),
  ],
  // jest's own report is on stderr; its JSON on stdout is for programs, and is in the file as well.
  { env: projectEnv(node), stdio: ['inherit', 'ignore', 'inherit'] },
);
const { passed, failed, failures, slow } = count(results);
rmSync(scratch, { recursive: true, force: true });
for (const { file, s } of slow) console.log(`slow: ${file}: ${s} s`);
for (const failure of failures) console.log(failure);
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = code !== 0 ? code : failed > 0 ? 1 : 0;

/** Counts of a file; one that does not load is one failure, and so is jest without a result. */
function count(file) {
  let r;
  try {
    r = JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return { passed: 0, failed: 1, failures: ['failed: jest ended without results'], slow: [] };
  }
  const failures = r.testResults
    .filter((suite) => suite.status === 'failed')
    .flatMap((suite) => {
      const tests = suite.assertionResults.filter((test) => test.status === 'failed');
      return tests.length === 0
        ? [line(suite.name, 'does not load', suite.message)]
        : tests.map((test) => line(suite.name, test.fullName, test.failureMessages.join('\n')));
    });
  const slow = r.testResults
    .map((suite) => ({
      file: relative(process.cwd(), suite.name),
      s: Math.round((suite.endTime - suite.startTime) / 1000),
    }))
    .filter(({ s }) => s >= SLOW_S)
    .sort((a, b) => b.s - a.s);
  return { passed: r.numPassedTests, failed: r.numFailedTests + r.numRuntimeErrorTestSuites, failures, slow };
}

/** Line of a failed test, without colours: `failed: FILE: TEST: the beginning of the message`. */
function line(file, test, message) {
  const plain = stripVTControlCharacters(message).replaceAll(/\s+/gu, ' ').trim();
  return `failed: ${relative(process.cwd(), file)}: ${test}: ${plain.slice(0, 300)}`;
}
