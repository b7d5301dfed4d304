import { describe, expect, it } from '@jest/globals';
import { decidersNamed } from '../../../lib/drivers/sim/deciders.ts';
import { outcomeOf } from '../../../lib/drivers/sim/outcome-of-run.ts';
import type { Observation } from '../../../lib/domain/observation.ts';
import { attemptId, jobId } from '../../../lib/kernel/ids.ts';
import { between, gte, raw, seconds } from '../../../lib/kernel/units.ts';
import type { SpeculatePolicy } from '../../../lib/policy/contracts.ts';
import { ownPolicy } from '../../../lib/policy/own/own-policy.ts';
import type { Fleet } from '../../../lib/ports/fleet.ts';
import { job, spec, stage } from '../../support/builders.ts';
import { discrepancies, EngineBench, type Deed } from '../../support/engine-bench.ts';
import { after, calmTrace, SAVES, START_MS } from '../../support/mixed-workload.ts';
import { simulated, simulatedJob } from '../../support/simulated.ts';

/** A speculating policy of the user's own, from its answer to the end of the job, in each world. */

const SLOW_S = seconds(900);

/** A copy of every original that runs for long, on an instance that is bought where there is no room. */
const speculate: SpeculatePolicy = ({ snapshot }) =>
  snapshot.running.flatMap(({ attempt }) => {
    const { id, role, startedMs, state } = attempt;
    const isSlow = startedMs !== null && gte(between(startedMs, snapshot.nowMs), SLOW_S);
    const pool = snapshot.pools.find((p) => p.pool.option === 'spot')?.pool.id;
    if (!isSlow || pool === undefined || state === 'stopping' || role === 'copy') return [];
    return [{ of: id, reason: 'it is slow', to: { pool, bid: 'uncapped' as const } }];
  });

const J = jobId('j-slow');

async function run(env: Record<string, string>, stepped: boolean) {
  const bench = new EngineBench({
    trace: calmTrace,
    startMs: START_MS,
    config: { refundRule: 'none' },
    stages: (of) => ({ ...of, speculate }),
    ...(stepped ? { stepped } : { reusesSlots: true }),
  });
  await bench.submit([
    job({ name: J, submittedMs: START_MS, spec: spec({ stages: [stage({ env, tasks: 2, checkpoint: SAVES })] }) }),
  ]);
  /** All that was said of copies. */
  const told = new Set<string>();
  const look = (atS: number): Deed => ({
    atMs: after(atS),
    act: async (store) => (await store.explanation(J))?.copies?.forEach((c) => told.add(`${c.state}: ${c.why}`)),
  });
  await bench.drive({ deeds: Array.from({ length: 60 }, (_, i) => look(900 + 10 * i)) });
  const { store } = bench;
  const attempts = await store.attempts(J);
  const plans = (await store.plans(1000, null)).items.flatMap((p) => p.effects);
  return { bench, attempts, plans, told, job: await bench.job(J), wrong: await discrepancies(bench) };
}

describe.each([
  ['in one process', false],
  ['in steps', true],
])('a policy that asks for copies, %s', (_, stepped) => {
  it('has them bought for, started, and win; the originals are stopped and accounted apart', async () => {
    const of = await run({ RUNTIME_S: '7200', COPY_RUNTIME_S: '400' }, stepped);
    expect(of.wrong).toEqual([]);
    expect(of.job).toMatchObject({ state: 'succeeded', stages: [{ succeeded: 2, failed: 0 }] });
    const byTask = [...Map.groupBy(of.attempts, (a) => a.index).values()];
    expect(byTask.map((tries) => tries.map((a) => [a.role ?? 'original', a.outcome]))).toEqual([
      [
        ['original', 'superseded'],
        ['copy', 'succeeded'],
      ],
      [
        ['original', 'superseded'],
        ['copy', 'succeeded'],
      ],
    ]);
    const launches = of.plans.flatMap((e) => (e.kind === 'launch' ? [e.reason] : []));
    expect(launches.filter((reason) => reason.includes('for 2 copies'))).toHaveLength(1);
    const starts = of.plans.flatMap((e) => (e.kind === 'start' && e.role === 'copy' ? [e.attempt] : []));
    expect(starts.sort()).toEqual(['j-slow.main.0.2', 'j-slow.main.1.2']);
    const events = await of.bench.store.events(0, 1000);
    const stopped = events.filter((e) => e.type === 'attempt-stopping').map((e) => e.data['attempt']);
    expect(stopped.sort()).toEqual(['j-slow.main.0.1', 'j-slow.main.1.1']);
    expect([...of.told].sort()).toEqual([
      expect.stringMatching(/^runs: a copy runs on \S+: it is slow$/),
      expect.stringMatching(/^starts: a copy starts now on \S+: it is slow$/),
      expect.stringMatching(/^waits: a copy waits for instance \S+, which is starting: it is slow$/),
      expect.stringMatching(/^waits: an instance in \S+ is bought for a copy: it is slow$/),
    ]);
    const rows = await of.bench.store.ledger({ job: J });
    const kindOf = (n: number) => rows.filter((r) => r.attempt?.endsWith(`.${n}`) === true).map((r) => r.kind);
    expect([kindOf(1), kindOf(2)]).toEqual([
      ['speculative', 'speculative'],
      ['work', 'work'],
    ]);
  });

  it('has them in vain where the originals are first', async () => {
    const { attempts, wrong, job: done } = await run({ RUNTIME_S: '1500', COPY_RUNTIME_S: '5000' }, stepped);
    expect(wrong).toEqual([]);
    expect(done.state).toBe('succeeded');
    expect(attempts.map((a) => `${a.role ?? 'original'} ${a.outcome}`).sort()).toEqual([
      'copy superseded',
      'copy superseded',
      'original succeeded',
      'original succeeded',
    ]);
  });
});

/**
 * A fleet whose first attempt has claimed the outputs of its round, and is lost before it reports: no other attempt of
 * the round can publish.
 */
function claimedFleet(fleet: Fleet): Fleet {
  const rounds = new Map<string, number>();
  const publisher = attemptId('j-slow.main.0.1');
  const told = (o: Observation): Observation => {
    const isRival = o.kind === 'attempt-ended' && o.attempt !== publisher && rounds.get(o.attempt) === 1;
    if (!isRival || o.exitCode !== 0) return o;
    return { ...o, stopped: 'superseded', publisher };
  };
  return new Proxy(fleet, {
    get: (target, name: keyof Fleet) => {
      if (name === 'observe')
        return async (...after: Parameters<Fleet['observe']>) => (await target.observe(...after)).map(told);
      if (name !== 'start') return target[name]?.bind(target);
      return (requests: Parameters<Fleet['start']>[0]) => {
        for (const { attempt, task } of requests) rounds.set(attempt, task.round ?? task.number);
        return target.start(requests);
      };
    },
  });
}

it('a round whose claimant is lost gets no more copies and is stopped; the next round succeeds', async () => {
  const bench = new EngineBench({
    trace: calmTrace,
    startMs: START_MS,
    config: { refundRule: 'none' },
    stages: (of) => ({ ...of, speculate: (context) => speculate(context).map((c) => ({ ...c, attempts: 3 })) }),
  });
  const stages = [stage({ env: { RUNTIME_S: '7200', COPY_RUNTIME_S: '2000' } })];
  await bench.submit([job({ name: J, submittedMs: START_MS, spec: spec({ stages }) })]);
  const fleet = claimedFleet(bench.fleet);
  const lose: Deed = {
    atMs: after(2000),
    act: async (store) => bench.fleet.lose((await store.attempts(J))[0]!.instance),
  };
  await bench.drive({ deeds: [lose], through: () => ({ store: (s) => s, fleet: () => fleet }) });
  const attempts = await bench.store.attempts(J);
  const [first, ...others] = [...Map.groupBy(attempts, (a) => a.round ?? a.number).values()];
  expect(first?.map((a) => a.outcome)).toEqual(['interrupted', 'superseded', 'preempted']);
  expect(first?.[2]?.claimLostTo).toBe('j-slow.main.0.1');
  expect(others).toHaveLength(1);
  expect(others[0]?.filter((a) => a.outcome === 'succeeded')).toHaveLength(1);
  expect((await bench.job(J)).state).toBe('succeeded');
});

describe('a policy that asks for copies, in the simulator', () => {
  it('has every copy in the outcome, and no price on demand for it', async () => {
    const jobs = () => [simulatedJob('slow', 0, [3000, 3000], { stage: { checkpoint: SAVES } })];
    const about = { stage: 'speculate', name: 'eager', about: 'under test' } as const;
    const own = ownPolicy({ ...about, decide: () => speculate }, 'test.ts');
    const mine = { mine: { extends: 'greedy', speculate: 'eager' } };
    const of = async (preset: string) => {
      const deciders = decidersNamed(preset, mine, [own]);
      const result = await simulated(jobs(), { deciders });
      return { result, outcome: outcomeOf(result, { preset, seed: 1, fromMs: START_MS }) };
    };
    const [plain, copied] = [await of('greedy'), await of('mine')];
    expect(copied.result.refusedPolicies).toEqual([]);
    const { totals } = copied.outcome;
    expect(totals).toMatchObject({ jobs: 1, succeeded: 1 });
    expect(totals.attempts - plain.outcome.totals.attempts).toBeGreaterThanOrEqual(2);
    expect(totals.speculativeUsd).toBeGreaterThan(0);
    expect(totals.billedUsd).toBeCloseTo(
      totals.workUsd + totals.wastedUsd + totals.speculativeUsd + totals.movedUsd + totals.idleUsd,
      9,
    );
    expect(totals.onDemandUsd).toBeCloseTo(plain.outcome.totals.onDemandUsd, 3);
    expect(copied.outcome.jobs.speculativeUsd[0]).toBeCloseTo(totals.speculativeUsd, 9);
    expect(plain.outcome.totals.speculativeUsd).toBe(0);
    const types = copied.result.events.map((e) => e.type);
    expect(types.filter((t) => t === 'attempt-superseded')).toHaveLength(2);
    expect(raw(copied.result.endMs)).toBeGreaterThan(raw(START_MS));
  });
});
