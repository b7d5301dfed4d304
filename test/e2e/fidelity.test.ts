/**
 * One scenario twice: by local mode with real processes, and by the simulator, which decides what local mode has run
 * anew.
 *
 * They agree on what is bought (pools and how many), on what runs (each task once, each stage after those it waits
 * for), on which deadlines are met, and within tolerances on when and on cost. Where they differ, and by how much:
 * - start-up delays are drawn for each instance, and ids of instances differ: up to 130 s (`START_UP_S`);
 * - an engine of local mode takes wall time to notice, to decide and to start a process, which the clock's speed
 *   multiplies: `REACTION_S` for each decision before a task begins and once while it runs, and idle capacity
 *   meanwhile;
 * - a process takes longer than its sleep by the time that it needs to start, which `--replay` takes for running time.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import { raw } from '../../lib/kernel/units.ts';
import { openSqliteStore } from '../../lib/drivers/local/store/sqlite-store.ts';
import type { EventRecord } from '../../lib/ports/store.ts';
import type { Comparison } from '../../lib/report/figures.ts';

const EBB = join(process.cwd(), 'bin', 'ebb.mjs');
const cwd = mkdtempSync(join(tmpdir(), 'ebb-fidelity-'));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

const SPEED = 30;
/** Stratus section 3.3.1: an instance is up 30 to 160 s after it was asked for. */
const START_UP_S = 130;
/** Four seconds of wall time on a busy machine. */
const REACTION_S = 4 * SPEED;
/** Decisions before a task of a stage begins: its own, and those before it in the chain. */
const decisions = (task: string): number => (task.startsWith('chain.reduce') ? 2 : 1);
/** Real over simulated. Seen: 1.05 beside other work. */
const COST = { least: 0.9, most: 1.3 };

const JOBS = [
  {
    name: 'chain',
    owner: 'e2e',
    deadline: '2h',
    stages: [
      { name: 'map', tasks: 4, command: 'sleep 12', resources: { cpu: 1, memory: '512MiB' }, expectedRuntime: '6m' },
      {
        name: 'reduce',
        dependsOn: ['map'],
        command: 'sleep 6',
        resources: { cpu: 2, memory: '1GiB' },
        expectedRuntime: '3m',
      },
    ],
  },
  {
    name: 'flat',
    owner: 'e2e',
    tasks: 2,
    command: 'sleep 16',
    resources: { cpu: 2, memory: '2GiB' },
    expectedRuntime: '8m',
  },
];

interface Event {
  readonly type: string;
  readonly atMs: number;
  readonly data: Readonly<Record<string, unknown>>;
}

/** What was bought, and when each task began and ended, s since the first purchase. */
interface Timeline {
  readonly bought: readonly string[];
  readonly began: ReadonlyMap<string, number>;
  readonly ended: ReadonlyMap<string, number>;
  readonly late: readonly unknown[];
}

const eventOf = ({ type, atMs, data }: EventRecord): Event => ({ type, atMs: raw(atMs), data });

function timelineOf(events: readonly Event[], nameOf: (job: string) => string): Timeline {
  const of = (type: string) => events.filter((e) => e.type === type);
  const firstMs = of('instance-requested')[0]?.atMs ?? NaN;
  // job.stage.index.number
  const times = (type: string) =>
    new Map(
      of(type).map(({ data, atMs }) => {
        const [job = '', ...task] = String(data['attempt']).split('.');
        return [[nameOf(job), ...task].join('.'), (atMs - firstMs) / 1000];
      }),
    );
  return {
    bought: of('instance-requested')
      .map((e) => String(e.data['pool']))
      .sort(),
    began: times('attempt-starting'),
    ended: times('attempt-succeeded'),
    late: of('job-succeeded').map((e) => e.data['late'] ?? null),
  };
}

function ebb<T>(...args: string[]): T {
  const { status, stdout, stderr } = spawnSync(process.execPath, [EBB, ...args, '--json'], { cwd, encoding: 'utf8' });
  if (status !== 0) throw new Error(`ebb ${args.join(' ')} ended with ${status}: ${stderr}`);
  return JSON.parse(stdout) as T;
}

describe('local mode and the simulator', () => {
  it('buy and run the same at about the same times and cost', async () => {
    const files = JOBS.map((job, i) => {
      writeFileSync(join(cwd, `${i}.json`), JSON.stringify(job));
      return `${i}.json`;
    });
    const local = ebb<{ costUsd: number }>('run', ...files, '--speed', String(SPEED), '--seed', '3');
    const simulated = ebb<Comparison>('simulate', '--replay', '.ebb', '--log', 'sim.jsonl').presets[0];

    const store = openSqliteStore({ path: join(cwd, '.ebb', 'ebb.db') });
    const jobs = await store.jobs({}, 10, null);
    const names = new Map(jobs.items.map((j) => [String(j.id), j.spec.name]));
    const real = timelineOf((await store.events(0, 10_000)).map(eventOf), (id) => names.get(id) ?? id);
    await store.close();
    const log = readFileSync(join(cwd, 'sim.jsonl'), 'utf8').trim().split('\n');
    const events = log.map((line) => JSON.parse(line) as Event & { readonly job: string | null });
    const submitted = events.filter((e) => e.type === 'job-submitted').map((e) => String(e.job));
    const made = timelineOf(events, (id) => JOBS[submitted.indexOf(id)]?.name ?? id);

    expect(made.bought).toEqual(real.bought);
    expect(made.bought.length).toBeGreaterThan(1);
    expect([...made.began.keys()].sort()).toEqual([...real.began.keys()].sort());
    expect([...made.ended.keys()].sort()).toEqual([...real.ended.keys()].sort());
    expect(made.began.size).toBe(7);
    expect(made.late).toEqual(real.late);
    for (const timeline of [real, made]) {
      const maps = [...timeline.ended].flatMap(([task, atS]) => (task.startsWith('chain.map') ? [atS] : []));
      expect(timeline.began.get('chain.reduce.0.1')).toBeGreaterThanOrEqual(Math.max(...maps));
    }
    for (const [task, atS] of made.began) {
      const apartS = Math.abs(atS - (real.began.get(task) ?? NaN));
      expect(apartS).toBeLessThan(START_UP_S + decisions(task) * REACTION_S);
      const tookS = (timeline: Timeline): number =>
        (timeline.ended.get(task) ?? NaN) - (timeline.began.get(task) ?? NaN);
      expect(Math.abs(tookS(made) - tookS(real))).toBeLessThan(REACTION_S);
    }
    const ratio = local.costUsd / (simulated?.costUsd.value ?? NaN);
    expect(ratio).toBeGreaterThan(COST.least);
    expect(ratio).toBeLessThan(COST.most);
  }, 180_000);
});
