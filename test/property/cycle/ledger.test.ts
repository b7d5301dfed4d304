import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { epochMs, raw, seconds, usd } from '../../../lib/kernel/units.ts';
import { attemptId, instanceId, jobId } from '../../../lib/kernel/ids.ts';
import type { Reservation } from '../../../lib/domain/instance.ts';
import { attribute } from '../../../lib/cycle/money/ledger.ts';
import type { Bill } from '../../../lib/domain/ledger.ts';
import { attempt, instance, job, pool, resources } from '../../support/builders.ts';

const HOUR = 3_600_000;

const billOf = (pieces: readonly (readonly [ms: number, usd: number])[]): Bill => {
  let at = 0;
  const made = pieces.map(([ms, dollars]) => {
    const piece = { fromMs: epochMs(at), toMs: epochMs(at + ms), usd: dollars, onDemandUsd: dollars * 3 };
    at += ms;
    return piece;
  });
  return { totalUsd: usd(pieces.reduce((s, p) => s + p[1], 0)), pieces: made };
};

const arbitraryBill = fc
  .array(fc.tuple(fc.integer({ min: 0, max: HOUR }), fc.double({ min: 0, max: 2, noNaN: true })), {
    minLength: 1,
    maxLength: 12,
  })
  .map(billOf);

const arbitraryAttempts = fc
  .array(
    fc.record({
      from: fc.integer({ min: 0, max: 6 * HOUR }),
      lasts: fc.integer({ min: 0, max: 6 * HOUR }),
      cpus: fc.integer({ min: 1, max: 4 }),
      keptS: fc.integer({ min: 0, max: 6 * 3600 }),
      outcome: fc.constantFrom('succeeded' as const, 'interrupted' as const, 'failed' as const, 'superseded' as const),
    }),
    { maxLength: 12 },
  )
  .map((list) =>
    list.map((a, index) =>
      attempt({
        index,
        state: 'ended',
        startedMs: epochMs(a.from),
        endedMs: epochMs(a.from + a.lasts),
        outcome: a.outcome,
        keptS: seconds(a.keptS),
        resources: resources(a.cpus),
      }),
    ),
  );

const rowsOf = (bill: Bill, attempts: ReturnType<typeof attempt>[], of = job()) =>
  attribute({
    instance: instance(),
    pool: pool(),
    bill,
    attempts,
    jobs: new Map([['j-test', of]]),
    until: epochMs(12 * HOUR),
  });

/** An instance bought for `a` and `b`, of which `a`, `c` and others may run. */
const shared = (bill: Bill, attempts: ReturnType<typeof attempt>[], untilMs = 12 * HOUR) =>
  attribute({
    instance: {
      ...instance(),
      boughtFor: [
        { job: jobId('j-a'), part: 0.75 },
        { job: jobId('j-b'), part: 0.25 },
      ],
    },
    pool: pool(),
    bill,
    attempts,
    jobs: new Map(),
    until: epochMs(untilMs),
  });

const byJob = (rows: ReturnType<typeof shared>): Record<string, number> => {
  const sums: Record<string, number> = {};
  for (const r of rows) sums[r.job ?? '(idle)'] = (sums[r.job ?? '(idle)'] ?? 0) + r.usd;
  return Object.fromEntries(Object.entries(sums).map(([job, usd]) => [job, Number(usd.toFixed(9))]));
};

/** Of a job, from one hour of the instance's life to another. */
const ran = (job: string, [from, to]: readonly [number, number], cpus: number) =>
  attempt({
    job: jobId(job),
    id: attemptId(`${job}-${from}-${cpus}`),
    state: 'ended',
    startedMs: epochMs(from * HOUR),
    endedMs: epochMs(to * HOUR),
    outcome: 'succeeded',
    resources: resources(cpus),
  });

describe('idle time of an instance', () => {
  it('has all running time of a replica as work, however it ended', () => {
    const replica = job({ spec: { ...job().spec, class: 'service' } });
    fc.assert(
      fc.property(arbitraryBill, arbitraryAttempts, (bill, attempts) => {
        const ran = attempts.map((a) => (a.outcome === 'superseded' ? { ...a, outcome: 'interrupted' as const } : a));
        const kinds = new Set(rowsOf(bill, ran, replica).map((row) => row.kind));
        expect([...kinds].filter((kind) => kind !== 'work' && kind !== 'idle')).toEqual([]);
      }),
    );
  });

  it('is of the jobs that it was bought for until something runs there, and of nobody where that is not known', () => {
    expect(byJob(shared(billOf([[HOUR, 1]]), []))).toEqual({ 'j-a': 0.75, 'j-b': 0.25 });
    expect(byJob(rowsOf(billOf([[HOUR, 1]]), []))).toEqual({ '(idle)': 1 });
  });

  it('is of the jobs that run while any does, and in a gap of those that ran just before it', () => {
    const bill = billOf(Array.from({ length: 5 }, () => [HOUR, 1] as const));
    // Start-up; c alone on a quarter; gap; a and c beside each other, 3 : 1; tail.
    const rows = shared(bill, [ran('j-c', [1, 2], 1), ran('j-a', [3, 4], 3), ran('j-c', [3, 4], 1)]);
    expect(byJob(rows)).toEqual({ 'j-a': 0.75 + 0.75 + 0.75, 'j-b': 0.25, 'j-c': 1 + 1 + 0.25 + 0.25 });
    const work = rows.filter((r) => r.kind === 'work').reduce((sum, r) => sum + r.usd, 0);
    expect(work).toBeCloseTo(0.25 + 1, 9);
  });

  it('once charged to a job stays charged to it, however the instance goes on', () => {
    let grew = 0;
    fc.assert(
      fc.property(
        arbitraryBill,
        arbitraryAttempts,
        fc.double({ min: 0.1, max: 0.9, noNaN: true }),
        (bill, list, at) => {
          const attempts = list.map((a, i) => ({
            ...a,
            job: jobId(`j-${'abc'[i % 3]}`),
            outcome: 'succeeded' as const,
          }));
          const pieces = bill.pieces.filter((p) => raw(p.toMs) > raw(p.fromMs));
          const early = { ...bill, pieces: pieces.slice(0, Math.ceil(pieces.length * at)) };
          const endMs = Math.max(0, ...early.pieces.map((p) => raw(p.toMs)));
          const seen = attempts.flatMap((a) => {
            if (raw(a.startedMs ?? epochMs(0)) >= endMs) return [];
            return [
              raw(a.endedMs ?? epochMs(0)) < endMs
                ? a
                : { ...a, endedMs: null, outcome: null, state: 'running' as const },
            ];
          });
          const before = byJob(shared(early, seen, endMs));
          const after = byJob(shared({ ...bill, pieces }, attempts));
          for (const [job, usd] of Object.entries(before)) {
            expect((after[job] ?? 0) - usd).toBeGreaterThan(-1e-6);
            if ((after[job] ?? 0) > usd + 1e-3) grew += 1;
          }
        },
      ),
      { seed: 11, numRuns: 600 },
    );
    expect(grew).toBeGreaterThan(50);
  });
});

describe('attribution of an instance to those who used it', () => {
  it('sums to the bill, whatever overlaps', () => {
    let overlapping = 0;
    fc.assert(
      fc.property(arbitraryBill, arbitraryAttempts, (bill, attempts) => {
        if (attempts.length > 3) overlapping += 1;
        const rows = rowsOf(bill, attempts);
        const sum = rows.reduce((s, r) => s + r.usd, 0);
        expect(Math.abs(sum - raw(bill.totalUsd))).toBeLessThan(1e-6);
        const onDemand = rows.reduce((s, r) => s + r.onDemandUsd, 0);
        expect(Math.abs(onDemand - 3 * raw(bill.totalUsd))).toBeLessThan(1e-6);
        for (const r of rows) expect(r.usd).toBeGreaterThanOrEqual(0);
      }),
      { seed: 7, numRuns: 300 },
    );
    expect(overlapping).toBeGreaterThan(50);
  });

  it('charges half an instance to a task of half its cores and the rest to idle', () => {
    const rows = rowsOf(billOf([[HOUR, 1]]), [
      attempt({
        state: 'ended',
        startedMs: epochMs(0),
        endedMs: epochMs(HOUR),
        outcome: 'succeeded',
        resources: resources(2),
      }),
    ]);
    expect(rows.map((r) => [r.kind, Number(r.usd.toFixed(9)), r.owner])).toEqual([
      ['work', 0.5, 'tester'],
      ['idle', 0.5, 'tester'],
    ]);
  });

  it('tells superseded running apart, and calls all waste that a lost copy ran', () => {
    const ended = { state: 'ended', startedMs: epochMs(0), endedMs: epochMs(HOUR), keptS: seconds(2700) } as const;
    const on = resources(1);
    const rows = rowsOf(billOf([[HOUR, 1]]), [
      attempt({ ...ended, outcome: 'succeeded', resources: on }),
      attempt({ ...ended, index: 1, outcome: 'superseded', resources: on }),
      attempt({ ...ended, index: 2, state: 'stopping', endedMs: null, outcome: null, supersededBy: attemptId('a-1') }),
      attempt({ ...ended, index: 3, role: 'copy', outcome: 'interrupted', resources: on }),
    ]);
    expect(rows.map((r) => [r.kind, Number(r.usd.toFixed(9))])).toEqual([
      ['work', 0.25],
      ['speculative', 0.25],
      ['speculative', 0.25],
      ['wasted', 0.25],
    ]);
  });

  it('splits an interrupted attempt at its last checkpoint into work and waste', () => {
    const rows = rowsOf(billOf([[HOUR, 1]]), [
      attempt({
        state: 'ended',
        startedMs: epochMs(0),
        endedMs: epochMs(HOUR),
        outcome: 'interrupted',
        keptS: seconds(2700),
        resources: resources(4),
      }),
    ]);
    expect(Object.fromEntries(rows.map((r) => [r.kind, Number(r.usd.toFixed(9))]))).toEqual({
      work: 0.75,
      wasted: 0.25,
    });
  });
});

/** One who leaves and one who comes, with the room that was kept in vain, as they stand at the end of all. */
interface Moving {
  readonly attempts: readonly ReturnType<typeof attempt>[];
  readonly reservations: readonly Reservation[];
}

/**
 * Random lives on one instance: each attempt may have come by a move, may leave for one, and ends in some way; room may
 * be kept for others that never come.
 */
const arbitraryMoves = fc
  .array(
    fc.record({
      from: fc.integer({ min: 0, max: 6 * HOUR }),
      waits: fc.option(fc.integer({ min: 1, max: HOUR }), { nil: null }),
      runs: fc.integer({ min: 1, max: 3 * HOUR }),
      saves: fc.option(fc.integer({ min: 1, max: HOUR }), { nil: null }),
      comes: fc.boolean(),
      keptS: fc.integer({ min: 0, max: 4 * 3600 }),
      outcome: fc.constantFrom('moved' as const, 'interrupted' as const, 'succeeded' as const, 'failed' as const),
      cpus: fc.integer({ min: 1, max: 4 }),
    }),
    { minLength: 1, maxLength: 8 },
  )
  .map((list): Moving => {
    const attempts: ReturnType<typeof attempt>[] = [];
    const reservations: Reservation[] = [];
    list.forEach((a, index) => {
      const of = { job: jobId(`j-${'abc'[index % 3]}`), resources: resources(a.cpus) };
      const id = attemptId(`a-${index}`);
      if (!a.comes && a.waits !== null) {
        reservations.push({ ...of, attempt: id, sinceMs: epochMs(a.from), untilMs: epochMs(a.from + a.waits) });
        return;
      }
      const startMs = a.from + (a.waits ?? 0);
      const leaves = startMs + a.runs;
      const isMove = a.saves !== null;
      attempts.push(
        attempt({
          ...of,
          ...{ id, index, state: 'ended', keptS: seconds(a.keptS) },
          ...{ startedMs: epochMs(startMs), endedMs: epochMs(leaves + (a.saves ?? 0)) },
          outcome: !isMove && a.outcome === 'moved' ? 'preempted' : a.outcome,
          ...(a.waits === null ? {} : { movedFrom: attemptId(`b-${index}`), reservedMs: epochMs(a.from) }),
          ...(isMove ? { goesTo: instanceId('i-2'), leaving: { sinceMs: epochMs(leaves) } } : {}),
        }),
      );
    });
    return { attempts, reservations };
  });

const charged = (bill: Bill, { attempts, reservations }: Moving, untilMs = 24 * HOUR) =>
  attribute({
    instance: { ...instance(), boughtFor: [{ job: jobId('j-a'), part: 1 }], reservations },
    pool: pool(),
    bill,
    attempts,
    jobs: new Map(),
    until: epochMs(untilMs),
  });

const whole = billOf(Array.from({ length: 12 }, () => [HOUR, 1] as const));

/** What the records were at that time: an arrival is still a reservation, and an end has not come. */
function asOf({ attempts, reservations }: Moving, nowMs: number): Moving {
  const awaited: Reservation[] = [];
  const seen = attempts.flatMap((a) => {
    const since = a.reservedMs === undefined ? Infinity : raw(a.reservedMs);
    if (raw(a.startedMs!) > nowMs) {
      const { job: of, resources: need, reservedMs, movedFrom } = a;
      if (since <= nowMs)
        awaited.push({ attempt: movedFrom!, job: of, resources: need, sinceMs: reservedMs!, untilMs: null });
      return [];
    }
    if (raw(a.endedMs!) <= nowMs) return [a];
    const { leaving, goesTo, ...rest } = a;
    const live = { ...rest, endedMs: null, outcome: null, keptS: seconds(0) };
    const leaves = leaving !== undefined && raw(leaving.sinceMs) <= nowMs;
    return [
      leaves
        ? { ...live, state: 'stopping' as const, leaving, goesTo: goesTo! }
        : { ...live, state: 'running' as const },
    ];
  });
  const kept = reservations.flatMap((r) =>
    raw(r.sinceMs) > nowMs ? [] : [raw(r.untilMs!) > nowMs ? { ...r, untilMs: null } : r],
  );
  return { attempts: seen, reservations: [...kept, ...awaited] };
}

describe('moves', () => {
  it('leave the sum at the bill, and each second of an attempt in exactly one kind', () => {
    const seen = { work: 0, wasted: 0, speculative: 0, moved: 0, idle: 0 };
    fc.assert(
      fc.property(arbitraryMoves, (of) => {
        const rows = charged(whole, of);
        expect(Math.abs(rows.reduce((s, r) => s + r.usd, 0) - 12)).toBeLessThan(1e-6);
        for (const r of rows) seen[r.kind] += 1;
        for (const a of of.attempts) {
          // Alone, so that nothing but its own time is charged to it.
          const own = charged(whole, { attempts: [{ ...a, resources: resources(4) }], reservations: [] });
          const mine = own.filter((r) => r.attempt === a.id).toSorted((x, y) => raw(x.fromMs) - raw(y.fromMs));
          const fromMs = raw(a.reservedMs ?? a.startedMs!);
          const paidS = mine.reduce((s, r) => s + r.usd * 3600, 0);
          expect(paidS).toBeCloseTo((raw(a.endedMs!) - fromMs) / 1000, 3);
          const movedS = mine.filter((r) => r.kind === 'moved').reduce((s, r) => s + r.usd * 3600, 0);
          const leftMs = a.leaving === undefined || a.outcome === 'succeeded' ? a.endedMs! : a.leaving.sinceMs;
          expect(movedS).toBeCloseTo((raw(a.startedMs!) - fromMs + raw(a.endedMs!) - raw(leftMs)) / 1000, 3);
        }
      }),
      { seed: 21, numRuns: 400 },
    );
    for (const kind of ['work', 'wasted', 'moved', 'idle'] as const)
      expect([kind, seen[kind] > 100]).toEqual([kind, true]);
  });

  it('take nothing from a job that is charged already, however they end', () => {
    let [grew, awaited] = [0, 0];
    fc.assert(
      fc.property(arbitraryMoves, fc.integer({ min: 1, max: 11 }), (of, hours) => {
        const nowMs = hours * HOUR;
        const now = asOf(of, nowMs);
        awaited += now.reservations.filter((r) => r.untilMs === null).length;
        const early = { ...whole, pieces: whole.pieces.slice(0, hours) };
        const before = byJob(charged(early, now, nowMs));
        const after = byJob(charged({ ...whole, pieces: early.pieces }, of));
        for (const [id, usd] of Object.entries(before))
          expect([id, Math.abs((after[id] ?? 0) - usd) < 1e-6]).toEqual([id, true]);
        grew += Object.keys(before).length;
      }),
      { seed: 22, numRuns: 600 },
    );
    expect([grew > 300, awaited > 30]).toEqual([true, true]);
  });
});
