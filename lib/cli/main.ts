import { CommanderError } from 'commander';
import type { World } from './context.ts';
import { asEbbError, errorAsJson, renderError } from './failure.ts';
import { makeOutput } from './output.ts';
import { buildProgram } from './program.ts';

/** Commands with heavy modules: built only when asked for. */
const WHOLE = new Set(['market', 'completion', 'complete']);

/**
 * Runs one command line (without `node` and the script); resolves to the exit code. Never rejects: errors go to
 * standard error. Exit codes are those of lib/kernel/errors.ts, and 130 and 143 after signals.
 */
export async function main(argv: readonly string[], world: World): Promise<number> {
  let code = 0;
  const words = argv.filter((a) => !a.startsWith('-'));
  const whole = words.some((w) => WHOLE.has(w));
  try {
    const program = await buildProgram({ world, finish: (c) => (code = c), whole });
    await program.parseAsync(argv.length === 0 ? ['--help'] : [...argv], { from: 'user' });
    return code;
  } catch (thrown) {
    if (thrown instanceof CommanderError && thrown.exitCode === 0) return 0;
    const error = asEbbError(thrown);
    const { stderr, env } = world;
    const output = makeOutput({ stdout: stderr, stderr, env, noColor: argv.includes('--no-color') });
    output.note(argv.includes('--json') ? errorAsJson(error) : renderError(error, output));
    if (error.code === 'internal' && env['EBB_DEBUG'] === '1') {
      output.note(String(error.facts.cause instanceof Error ? error.facts.cause.stack : error.stack));
    }
    return error.exit;
  }
}
