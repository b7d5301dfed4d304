import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

export interface Answer {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Run of the command line, as users have it. */
export async function ebb(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Answer> {
  const options = { env: { ...process.env, ...env }, maxBuffer: 2 ** 26 };
  try {
    const { stdout, stderr } = await promisify(execFile)(process.execPath, ['bin/ebb.mjs', ...args], options);
    return { code: 0, stdout, stderr };
  } catch (error) {
    const { code, stdout = '', stderr = '' } = error as { code?: number | string; stdout?: string; stderr?: string };
    if (typeof code !== 'number') throw error;
    return { code, stdout, stderr };
  }
}
