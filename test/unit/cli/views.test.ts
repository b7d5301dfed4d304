import { describe, expect, it } from '@jest/globals';
import type { FailureView } from '../../../lib/api/schemas.ts';
import { figures, summary, verdict } from '../../../lib/cli/views/summary.ts';
import { costTable, effectsText, instancesTable } from '../../../lib/cli/views/inventory-tables.ts';
import { explanation } from '../../../lib/cli/views/explanation.ts';
import { deadlineText, jobsTable, jobStatus } from '../../../lib/cli/views/job-views.ts';
import { progressLine, renderFrame, worthALine, type Frame } from '../../../lib/cli/views/live.ts';
import { attemptOf, eventOf, HEALTH, instanceOf, jobCostOf, jobOf, moneyOf } from './views.ts';
import { PLAIN } from '../../support/run-ebb.ts';

const NOW = HEALTH.now;

describe('deadlines', () => {
  it.each([
    [{}, 'in 2h 00m'],
    [{ deadlineAt: '2026-03-01T11:30:00.000Z' }, 'passed 30m 00s ago'],
    [{ deadlineAt: null }, '-'],
    [{ state: 'succeeded', finishedAt: '2026-03-01T13:30:00.000Z' }, 'met, 30m 00s early'],
    [{ state: 'succeeded', finishedAt: '2026-03-01T14:10:00.000Z' }, 'missed by 10m 00s'],
    [{ state: 'failed', finishedAt: '2026-03-01T13:30:00.000Z' }, '2026-03-01 14:00:00 (not finished)'],
  ] as const)('%j reads %s', (of, text) => expect(deadlineText(jobOf(of), NOW)).toBe(text));
});

describe('tables', () => {
  it('jobs: one line each, names from outside cannot move the cursor', () => {
    const lines = jobsTable(PLAIN, [jobOf({ name: 'a\u001b[2Jb' }), jobOf({ id: 'j-2' })], NOW).split('\n');
    expect(lines).toHaveLength(3);
    expect(lines[0]).toMatch(/^JOB +NAME +OWNER +STATE +TASKS +DEADLINE/);
    expect(lines[1]).toContain('a\\x1b[2Jb');
    expect(lines[1]).toContain('3/7, 2 running');
  });

  it('cost: tells attempts beside the first to succeed apart, where there are any', () => {
    const money = { workUsd: 2, wastedUsd: 0.5, speculativeUsd: 0.25, idleUsd: 0.5, totalUsd: 3.25, onDemandUsd: 12 };
    const total = moneyOf(money);
    const rows = [{ key: 'ada', ...total }];
    const shown = costTable(PLAIN, { by: 'owner', asOf: NOW, rows, next: null, total });
    expect(shown).toMatch(/WASTED +SPECULATIVE +IDLE/);
    expect(shown).toMatch(/^ada +\$2\.00 +\$0\.5000 +\$0\.2500 +\$0\.5000 +\$3\.25 +\$12\.00 +73%/m);
  });

  it('cost: has a total and what was saved', () => {
    const row = { key: 'ada', ...moneyOf({ workUsd: 2, wastedUsd: 0.5, idleUsd: 0.5, totalUsd: 3, onDemandUsd: 12 }) };
    const { key: _, ...total } = row;
    const shown = costTable(PLAIN, { by: 'owner', asOf: NOW, rows: [row], next: null, total });
    expect(shown).toMatch(/^ada +\$2\.00 +\$0\.5000 +\$0\.5000 +\$3\.00 +\$12\.00 +75%/m);
    expect(shown).toMatch(/^total /m);
  });

  it.each([
    [1.5, '-50%'],
    [2.5, 'paid 2.5x'],
    [214, 'paid 214x'],
  ])('cost: %d times the price on demand reads %s', (totalUsd, saved) => {
    const total = moneyOf({ workUsd: 0, wastedUsd: 0, idleUsd: totalUsd, totalUsd, onDemandUsd: 1 });
    expect(costTable(PLAIN, { by: 'owner', asOf: NOW, rows: [{ key: 'ada', ...total }], next: null, total })).toContain(
      saved,
    );
  });

  it('empty ones say so', () => {
    expect(instancesTable(PLAIN, [])).toBe('no instances');
    expect(effectsText({ effects: [] })).toBe('nothing to do');
  });

  it('an ended instance shows why it ended', () => {
    expect(instancesTable(PLAIN, [instanceOf({ state: 'ended', endCause: 'interrupted' })])).toContain('interrupted');
  });

  it('an instance shows for which jobs it was bought', () => {
    const of = (...names: (string | null)[]): string =>
      instancesTable({ ...PLAIN, columns: 200 }, [
        instanceOf({ boughtFor: names.map((name, i) => ({ job: `j-${i}`, name, part: 1 / names.length })) }),
      ]);
    expect(of('render', 'etl', 'fit', 'x')).toMatch(/render, etl \+2$/);
    expect(of(null, 'bad\u001b[2J')).toMatch(/j-0, bad\\x1b\[2J$/);
  });
});

it('status shows stages, cost, and the reason of the state only while the job is open', () => {
  const cost = jobCostOf({ totalUsd: 0.5, onDemandUsd: 2, wastedUsd: 0.1 });
  const open = jobStatus(PLAIN, jobOf({ headline: 'waits for a cheaper price' }), cost);
  expect(open).toContain('waits for a cheaper price');
  expect(open).toContain('$0.5000, $2.00 on on-demand, $0.1000 of it for work that was lost');
  expect(open).toMatch(/frames +█{10}▒{7}░{3} +3\/6, 2 running +1 vCPU, 512 MiB/);
  const over = jobOf({ headline: 'waits', state: 'succeeded', finishedAt: NOW, onTime: true });
  expect(jobStatus(PLAIN, over, cost)).not.toContain('waits');
});

describe('the disk', () => {
  const disk = { usedBytes: 4.1e9, budgetBytes: 5e9, freeBytes: 12e9, reserveBytes: 2.6e8 };

  it('is shown with a job that is open, where it is known', () => {
    const shown = jobStatus(PLAIN, jobOf(), jobCostOf(), { ...disk, level: 'low' });
    expect(shown).toMatch(/^disk +4\.1 GB of 5 GB \(82 %\), 12 GB free$/m);
    expect(jobStatus(PLAIN, jobOf(), jobCostOf())).not.toMatch(/^disk/m);
  });

  it.each([
    ['enough', false],
    ['low', true],
    ['used-up', true],
  ] as const)('that has %s is in the picture: %s', (level, isShown) => {
    const frame = { jobs: [], instances: [], prices: new Map(), spent: moneyOf(), recent: [] };
    const shown = renderFrame(PLAIN, { ...frame, health: { ...HEALTH, disk: { ...disk, level } } });
    expect(shown.includes('disk: 4.1 GB of 5 GB (82 %), 12 GB free')).toBe(isShown);
  });
});

it('explain says why, what would change it, and what was considered', () => {
  const shown = explanation(PLAIN, {
    job: 'j-1',
    name: 'render',
    state: 'pending',
    at: NOW,
    headline: 'Waits: prices are falling.',
    waiting: [
      {
        stage: 'frames',
        tasks: 6,
        why: 'cheaper-later',
        detail: 'expected to be 20 % cheaper in 30 min',
        wouldChange: 'a nearer deadline',
        expectedStartAt: '2026-03-01T12:30:00.000Z',
      },
    ],
    placed: [],
    copies: [],
    moves: [],
    considered: [
      {
        pool: 'c5.large/us-east-1a/spot',
        bid: 0.085,
        priceUsdPerHour: 0.0312,
        pInterrupted: 0.031,
        pLate: 0.0002,
        expectedCostUsd: 0.0123,
        verdict: 'best',
      },
    ],
    excluded: [{ constraint: 'arch', pools: 12 }],
    forecast: [
      {
        pool: 'c5.large/us-east-1a/spot',
        bid: 0.05,
        pWithinHour: 0.031,
        reason: 'price: bid 0.01 USD/h above the price, by the model v7; capacity: little is known',
        drivers: { aboveUsd: 0.01, lastAboveS: 4000, knownS: 604_800, range24hUsd: 0.0123 },
      },
    ],
    runtime: { medianS: 600, p90S: 900, basis: '12 earlier runs' },
    admission: { feasible: true, notes: [] },
  });
  for (const part of [
    'Waits: prices are falling.',
    'frames: 6 tasks (cheaper-later) - expected to be 20 % cheaper in 30 min',
    'would change it: a nearer deadline',
    'expected to start: 2026-03-01 12:30:00',
    'arch: 12 pools',
    'c5.large/us-east-1a/spot, bid $0.0500/h: 3.1% within an hour - price: bid 0.01 USD/h above the price, by the model v7',
    'bid 0.0100 USD/h above the price, last passed 1h 06m ago; the price moved within 0.0123 USD/h in a day',
    'median 10m 00s, 90 % within 15m 00s - 12 earlier runs',
  ]) {
    expect(shown).toContain(part);
  }
  expect(shown).toMatch(/c5\.large\/us-east-1a\/spot +\$0\.0850\/h +\$0\.0312\/h +3\.1% +<0\.1% +\$0\.0123 +best/);
});

describe('the live display', () => {
  const frame: Frame = {
    health: HEALTH,
    jobs: [jobOf()],
    instances: [instanceOf()],
    prices: new Map([['c5.large/us-east-1a/spot', 0.0312]]),
    spent: moneyOf({ totalUsd: 0.25 }),
    recent: [eventOf('job-submitted', 'job render submitted')],
  };

  it('shows stages, deadline, instances with pool and price, spend and the last event', () => {
    const shown = renderFrame(PLAIN, frame);
    expect(shown).toContain('deadline in 2h 00m');
    expect(shown).toMatch(/frames █+▒+░+ 3\/6, 2 running/);
    expect(shown).toContain('1 instance, spent $0.2500');
    expect(shown).toMatch(/i-1 c5\.large\/us-east-1a\/spot \$0\.0312\/h ready frames\[4\]/);
    expect(shown).toContain('12:00:00 job render submitted');
  });

  it('stays within a screen however much there is', () => {
    const many = renderFrame(PLAIN, {
      ...frame,
      jobs: Array.from({ length: 100 }, (_, i) => jobOf({ id: `j-${i}` })),
      instances: Array.from({ length: 100 }, (_, i) => instanceOf({ id: `i-${i}` })),
      recent: Array.from({ length: 100 }, () => eventOf('x', 'y'.repeat(500))),
    });
    expect(many.split('\n').length).toBeLessThan(40);
    expect(many).toContain('and 88 more jobs');
    expect(Math.max(...many.split('\n').map((l) => l.length))).toBeLessThan(PLAIN.columns);
  });

  it('is one line where there is no terminal', () => {
    expect(progressLine(frame)).toBe('render 3/7, 2 running, deadline in 2h 00m; 1 instance; $0.2500');
    expect(progressLine({ ...frame, refundedUsd: 0.1 })).toMatch(/; \$0\.2500, \$0\.1000 refunded$/);
    expect(renderFrame(PLAIN, { ...frame, refundedUsd: 0.1 })).toContain('spent $0.2500, $0.1000 refunded');
  });

  it('prints single tasks only of small jobs, and never leaves out an interruption', () => {
    expect(worthALine(eventOf('attempt-succeeded'), 10)).toBe(true);
    expect(worthALine(eventOf('attempt-succeeded'), 10_000)).toBe(false);
    expect(worthALine(eventOf('attempt-interrupted'), 10_000)).toBe(true);
    expect(worthALine(eventOf('instance-warned'), 10_000)).toBe(true);
  });
});

describe('the closing summary', () => {
  const done = jobOf({ state: 'succeeded', finishedAt: '2026-03-01T13:30:00.000Z', onTime: true });
  const result = {
    jobs: [
      {
        job: done,
        cost: jobCostOf(),
        attempts: [
          attemptOf(),
          attemptOf({ index: 1, outcome: 'interrupted', keptS: 480 }),
          attemptOf({ index: 1, number: 2, resumedFromS: 480 }),
          attemptOf({ index: 2, outcome: 'preempted', keptS: 600 }),
          attemptOf({ index: 3, outcome: 'failed', keptS: 0, startedAt: null }),
        ],
        failures: [],
      },
    ],
    spent: moneyOf({ workUsd: 0.6, wastedUsd: 0.1, idleUsd: 0.3, totalUsd: 1, onDemandUsd: 4 }),
    instancesLost: 1,
    refundedUsd: 0.2,
    elapsedS: 9000,
  };

  it('counts interruptions apart from preemptions and failures, and only lost work as redone', () => {
    expect(figures(result)).toMatchObject({ interruptions: 1, preemptions: 1, failures: 1, redoneS: 120, saved: 0.75 });
    expect(figures(result)).toMatchObject({ instancesLost: 1, tasksMoved: 1, savedWithoutRefunds: 0.7 });
  });

  it('says by how much the deadline was met, what it cost, what was saved, what was lost', () => {
    const shown = summary(PLAIN, result);
    expect(shown).toContain('✓ render succeeded');
    expect(shown).toContain('deadline met, 30m 00s early');
    expect(shown).toMatch(
      /^cost +\$1\.00 \(\$0\.3000 of it starting up and idle\), after refunds of \$0\.2000 for .*first hour$/m,
    );
    expect(shown).toMatch(/^on on-demand +\$4\.00: 75% saved \(without refunds 70%\)$/m);
    expect(shown).toMatch(
      /^survived +1 instance lost to the market, 1 task went on elsewhere, 1 preemption, 1 failed attempt$/m,
    );
    expect(shown).toMatch(/^wasted work +\$0\.1000, 2m 00s done again$/m);
  });

  it('says why tasks failed, without what would command the terminal', () => {
    const failure: FailureView = {
      stage: 'frames',
      index: 3,
      final: true,
      attempt: 2,
      outcome: 'failed',
      exitCode: 3,
      exitSignal: null,
      reason: 'exit code 3',
      endedAt: null,
      alike: 2,
      stderr: 'Traceback\n\u001b[2Jno such file',
      merged: false,
    };
    const failed = jobOf({ state: 'failed', stateReason: 'stage frames: task 3 failed' });
    const quiet = { ...failure, index: 4, reason: 'output a.png was not made', alike: 0, stderr: null, final: false };
    const shown = summary(PLAIN, {
      ...result,
      jobs: result.jobs.map((j) => ({ ...j, job: failed, failures: [failure, quiet] })),
    });
    expect(shown).toContain(
      [
        '  stage frames: task 3 failed',
        '  frames[3] failed at attempt 2: exit code 3 (and 2 more tasks likewise)',
        '    | Traceback',
        '    | \\x1b[2Jno such file',
        '  frames[4] failed at attempt 2, is tried again: output a.png was not made',
        '    it wrote nothing to standard error',
      ].join('\n'),
    );
  });

  it('does not call a dearer run a saving', () => {
    const dear = { ...result, spent: moneyOf({ totalUsd: 5, onDemandUsd: 4 }) };
    expect(summary(PLAIN, dear)).toContain('25% more was paid');
  });

  it.each([
    [{ state: 'succeeded', onTime: true, endedLate: false }, null],
    [{ state: 'succeeded', onTime: null, endedLate: false }, null],
    [{ state: 'succeeded', onTime: false, endedLate: false }, 'job.late'],
    [{ state: 'failed', onTime: false, endedLate: false }, 'job.failed'],
    [{ state: 'failed', onTime: false, endedLate: true }, 'job.late'],
    [{ state: 'cancelled', onTime: null, endedLate: false }, 'job.cancelled'],
    [{ state: 'held', onTime: null, endedLate: false }, 'job.held'],
  ] as const)('a job with %j ends with %s', (of, code) => expect(verdict(of)).toBe(code));
});
