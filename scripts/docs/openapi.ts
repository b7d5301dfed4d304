/**
 * Writes docs/reference/openapi.json from the operations of the API. `--check` writes nothing and fails if the file
 * differs, so that changes of the API come with their description.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openApiDocument } from '../../lib/api/openapi.ts';
import { OPERATIONS } from '../../lib/api/operations.ts';
import { formatted } from './page.ts';

const file = fileURLToPath(new URL('../../docs/reference/openapi.json', import.meta.url));
const wanted = await formatted(file, JSON.stringify(openApiDocument(OPERATIONS)));

if (process.argv.includes('--check')) {
  const stored = await readFile(file, 'utf8').catch(() => '');
  if (stored !== wanted) {
    process.stderr.write('docs/reference/openapi.json is out of date; run: node scripts/docs/openapi.ts\n');
    process.exitCode = 1;
  }
} else {
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, wanted);
  process.stdout.write(`${file}: ${OPERATIONS.length} operations\n`);
}
