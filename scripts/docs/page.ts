import { readFileSync, writeFileSync } from 'node:fs';
import { relative } from 'node:path';
import { format } from 'oxfmt';
import options from '../../.oxfmtrc.json' with { type: 'json' };

/**
 * Writes a generated page. With `--check` compares instead: exit code 1 and the command that regenerates it if it
 * differs.
 */
export async function publish(file: URL, markdown: string): Promise<void> {
  const path = file.pathname;
  const text = await formatted(path, markdown);
  const name = relative(process.cwd(), path);
  if (!process.argv.includes('--check')) {
    writeFileSync(file, text);
    console.log(`wrote ${name}`);
    return;
  }
  if (current(file) === text) return;
  console.error(`${name} is not what the sources say: run \`npm run docs\` and commit it`);
  process.exitCode = 1;
}

/** Text as `npm run format` formats a file of that name. */
export async function formatted(name: string, text: string): Promise<string> {
  const { code, errors } = await format(name, text, options);
  if (errors.length > 0) throw new Error(`${name}: ${errors.map((error) => error.message).join('; ')}`);
  return code;
}

function current(file: URL): string | null {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return null;
  }
}
