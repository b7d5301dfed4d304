// `npm test`: installs what is missing, runs every test, and ends with `N passed, N failed` on standard output.
// Arguments go to jest: `npm test -- test/unit/cli`.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensureInstalled, projectEnv, projectNode, run } from './toolchain.mjs';

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
const { passed, failed } = count(results);
rmSync(scratch, { recursive: true, force: true });
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = code !== 0 ? code : failed > 0 ? 1 : 0;

/** A test file that does not even load counts as one failure, and so does jest dying without a result. */
function count(file) {
  try {
    const r = JSON.parse(readFileSync(file, 'utf8'));
    return { passed: r.numPassedTests, failed: r.numFailedTests + r.numRuntimeErrorTestSuites };
  } catch {
    return { passed: 0, failed: 1 };
  }
}
