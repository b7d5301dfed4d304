import { PassThrough, Readable } from 'node:stream';
import type { World } from '../../lib/cli/context.ts';
import { main } from '../../lib/cli/main.ts';
import { makeOutput, type Output } from '../../lib/cli/output.ts';

export interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs one command line in this process, with streams that are read back. */
export async function ebb(args: readonly string[], given: Partial<World> & { input?: string } = {}): Promise<Ran> {
  const stdout = new PassThrough();
  const stderr = new PassThrough();
  const stdin = Readable.from(given.input === undefined ? [] : [given.input]);
  const code = await main(args, { stdout, stderr, stdin, env: {}, cwd: process.cwd(), ...given });
  return { code, stdout: String(stdout.read() ?? ''), stderr: String(stderr.read() ?? '') };
}

/** An output without colours that keeps nothing: for views, which only need the colours. */
export const PLAIN: Output = makeOutput({
  stdout: { write: () => true, columns: 200 },
  stderr: { write: () => true },
  env: {},
  noColor: true,
});
