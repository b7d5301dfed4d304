import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { StageSpec } from '../../../../../lib/domain/job.ts';
import { EbbError } from '../../../../../lib/kernel/errors.ts';
import { FoldersAtHand, refuseMissingFiles } from '../../../../../lib/drivers/local/admit/files-at-hand.ts';
import { matchingFiles } from '../../../../../lib/drivers/local/fleet/matching-files.ts';
import { spec, stage } from '../../../../support/builders.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'ebb-at-hand-'));
  mkdirSync(join(dir, 'data'));
  for (const name of ['a.csv', 'data/0.txt', 'data/2.txt']) writeFileSync(join(dir, name), '');
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

async function refused(stages: readonly Partial<StageSpec>[], after: readonly string[] = []): Promise<string[]> {
  const job = spec({ after, stages: stages.map((s, i) => ({ ...stage({ name: `s${i}` }), workdir: dir, ...s })) });
  try {
    await refuseMissingFiles(job, new FoldersAtHand(() => 0));
    return [];
  } catch (error) {
    if (!(error instanceof EbbError)) throw error;
    expect(error.code).toBe('job.input-missing');
    return error.facts.issues?.map((i) => `${i.at}: ${i.message}`) ?? [];
  }
}

describe('at submission, files of this machine', () => {
  it('that are missing are named, all at once', async () => {
    expect(
      await refused([
        { inputs: ['a.csv', 'b.csv', '*.tif', 'data/**', 'data', 'a.csv/x'] },
        { workdir: join(dir, 'no'), inputs: ['a.csv'] },
        { workdir: join(dir, 'a.csv') },
      ]),
    ).toEqual([
      `stages.s0.inputs: input pattern b.csv matches nothing in ${dir}`,
      `stages.s0.inputs: input pattern *.tif matches nothing in ${dir}`,
      `stages.s0.inputs: input pattern a.csv/x matches nothing in ${dir}`,
      `stages.s1.workdir: the working directory ${join(dir, 'no')} does not exist`,
      `stages.s2.workdir: the working directory ${join(dir, 'a.csv')} is no folder`,
    ]);
  });

  it('are looked for with each index', async () => {
    expect(await refused([{ tasks: 3, inputs: ['data/{index}.txt'] }])).toEqual([
      `stages.s0.inputs: input pattern data/{index}.txt matches nothing in ${dir} for task 1`,
    ]);
    expect((await refused([{ tasks: 9, inputs: ['data/{index}.*'] }]))[0]).toContain('for task 1, 3, 4 and 4 more');
  });

  it('that an earlier stage or job may make are left to the task', async () => {
    expect(await refused([{}, { dependsOn: ['s0'], inputs: ['later'], workdir: join(dir, 'made') }])).toEqual([]);
    expect(await refused([{ inputs: ['later'] }], ['other'])).toEqual([]);
  });

  it('that cannot be found in bounded time are left to the task', async () => {
    expect(await refused([{ tasks: 10_000, inputs: ['data/0.txt{index}', 'x{index}', 'y{index}', 'z'] }])).toHaveLength(
      2,
    );
    expect(await refused([{ inputs: ['{a,b}'.repeat(30)] }])).toEqual([]);
    // 30,000 names, of which 20,000 at most are asked for.
    const [named = ''] = await refused([{ tasks: 30, inputs: ['{0..999}/{index}'] }]);
    expect(named).toContain('matches nothing');
    expect(named).not.toContain('and 27 more');
  });

  it('are looked for once in each folder, in however many ways it can be reached', async () => {
    const deep = join(dir, 'a/'.repeat(24));
    mkdirSync(deep, { recursive: true });
    const looked = new Map<string, number>();
    for await (const path of matchingFiles('**/*/'.repeat(10), dir)) looked.set(path, (looked.get(path) ?? 0) + 1);
    expect([...looked]).toEqual([[join('a/'.repeat(10)).slice(0, -1), 1]]);
    expect(await refused([{ inputs: ['**/*/'.repeat(10) + 'z'] }])).toHaveLength(1);
  }, 5000);
});
