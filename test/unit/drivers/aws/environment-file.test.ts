import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { ENTRY_POINT } from '../../../../lib/drivers/aws/fleet/entrypoint.ts';
import { partedEnvironment } from '../../../../lib/drivers/aws/fleet/environment-file.ts';
import { placedInS3 } from '../../../../lib/drivers/aws/fleet/job-files.ts';
import { normaliseJob } from '../../../../lib/domain/job-file/job-file.ts';

/** As an older agent reads a file: what follows a second `=` is lost, as is an empty value. */
function asAnAgentReads(content: string): Readonly<Record<string, string>> {
  return Object.fromEntries(
    content.split('\n').flatMap((line) => {
      const [name = '', value = ''] = line.split('=');
      return line.startsWith('#') || name === '' || value === '' ? [] : [[name, value]];
    }),
  );
}

/** What a program finds in its environment that the entrypoint starts in this shell, in a process group of its own. */
async function foundIn(
  shell: readonly string[],
  given: Readonly<Record<string, string>>,
): Promise<Map<string, string>> {
  const dir = mkdtempSync(join(tmpdir(), 'ebb-env-'));
  try {
    const [program = 'sh', ...options] = shell;
    const child = spawn(program, [...options, ...ENTRY_POINT.slice(1), 'env', '-0'], {
      cwd: dir,
      env: { PATH: process.env['PATH'] ?? '', TMPDIR: dir, EBB_CHECKPOINT_DIR: join(dir, 'checkpoint'), ...given },
      detached: true,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const entries = (await text(child.stdout)).split('\0');
    return new Map(entries.map((e) => [e.slice(0, e.indexOf('=')), e.slice(e.indexOf('=') + 1)]));
  } finally {
    rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
  }
}

const SHELLS = [['/bin/dash'], ['/bin/bash', '--posix'], ['/bin/busybox', 'sh']].filter(([path = '']) =>
  existsSync(path),
);
const env = fc.dictionary(
  fc.stringMatching(/^[A-DF-Z][A-Z0-9_]{3,12}$/),
  fc.oneof(
    fc.string({ unit: 'binary' }).map((text) => text.replaceAll('\0', '')),
    fc.constantFrom('', '\n', "'", '\\', '=', '#', '%b', '\\n', '$(id)', 'a\r', ' a ', '\\0101'),
  ),
  { minKeys: 20, maxKeys: 60 },
);

describe('an environment as a file for ECS', () => {
  it('is there as it was, whatever the shell of the image', async () => {
    expect(SHELLS.length).toBeGreaterThan(0);
    let variables = 0;
    await fc.assert(
      fc.asyncProperty(env, fc.constantFrom(...SHELLS), async (given, shell) => {
        const parted = partedEnvironment(given);
        expect(parted?.rest).toEqual({});
        const found = await foundIn(shell, asAnAgentReads(parted?.content ?? ''));
        for (const [name, value] of Object.entries(given)) expect([name, found.get(name)]).toEqual([name, value]);
        expect(found.has('EBB_ENV')).toBe(false);
        variables += Object.keys(given).length;
      }),
      { numRuns: 8 },
    );
    expect(variables).toBeGreaterThan(160);
  }, 60_000);

  it('leaves out names that mean something to a shell, and is none without others', () => {
    expect(partedEnvironment({})).toEqual({ content: '', rest: {} });
    const own = { IFS: ',', UID: '0', BASH_ENV: 'x', _: 'y' };
    expect(partedEnvironment(own)).toEqual({ content: '', rest: own });
    expect(partedEnvironment({ ...own, A: 'b' })).toEqual({
      content: 'EBB_ENV=export\\0040A\\0075\\0047b\\0047\n',
      rest: own,
    });
  });

  it('is one line that an agent can read, or none at all', () => {
    expect(partedEnvironment({ A: 'x'.repeat(64_000) })?.content.length).toBeLessThan(65_536);
    expect(partedEnvironment({ A: 'x'.repeat(66_000) })).toBeNull();
    expect(partedEnvironment({ A: ' '.repeat(20_000) })).toBeNull();
  });

  it('asks for the AWS CLI in the image only where it is too long for a file', () => {
    const notes = (env: Readonly<Record<string, string>>) =>
      placedInS3(normaliseJob({ name: 'j', command: 'x', env }, { baseDir: '/', defaultOwner: 'ana' }), 'bucket', 'j-1')
        .notes;
    expect(notes({ A: 'x'.repeat(20_000) })).toEqual([]);
    // 4,500 characters are 13,500 bytes, and 67,500 in escapes.
    expect(notes({ A: '漢'.repeat(4500) })).toEqual([expect.stringContaining('must have the AWS CLI')]);
  });
});
