import { expect, it } from '@jest/globals';
import { jobId } from '../../../lib/kernel/ids.ts';
import { epochMs, raw, seconds } from '../../../lib/kernel/units.ts';
import { distribution } from '../../../lib/domain/distribution.ts';
import type { RunningTask } from '../../../lib/domain/snapshot.ts';
import type { Forecasts } from '../../../lib/domain/forecasts.ts';
import { Alike, distinctOf } from '../../../lib/cycle/state/alike.ts';
import { leftOf, leftOfEach } from '../../../lib/policy/left-of.ts';
import { attempt, snapshot, stage } from '../../support/builders.ts';
import { market } from '../../support/decision-world.ts';

const NOW = 10_000_000;
const first = stage({ name: 'first' });
const second = stage({ name: 'second' });

const base = { job: jobId('j-1'), stage: 'first', startedMs: epochMs(NOW - 600_000), resumedFromS: seconds(0) };

function running(over: Partial<RunningTask> = {}, of: Parameters<typeof attempt>[0] = {}): RunningTask {
  return {
    attempt: attempt({ state: 'running', ...base, ...of }),
    class: 'best-effort',
    stage: first,
    deadlineMs: null,
    readS: seconds(0),
    savedS: seconds(0),
    ...over,
  };
}

/** Each unlike `running()` in one thing, and for that with another time left. */
const UNLIKE: readonly (readonly [what: string, task: RunningTask])[] = [
  ['job', running({}, { job: jobId('j-2') })],
  ['stage', running({ stage: second }, { stage: 'second' })],
  ['start', running({}, { startedMs: epochMs(NOW - 60_000) })],
  ['not begun', running({}, { startedMs: null })],
  ['what it resumed from', running({}, { resumedFromS: seconds(400) })],
  ['the reading of its checkpoint', running({ readS: seconds(300) })],
  ['how long its task ran before', running({ ranS: seconds(4500) })],
];

const runtime = (...atS: number[]) => ({
  runtime: distribution(atS.map((s) => [s, 1])),
  basis: 'history' as const,
  reason: 'given',
});
const forecasts: Forecasts = {
  runtime: new Map([
    ['j-1/first', runtime(1000, 4000, 9000)],
    ['j-1/second', runtime(2000, 5000)],
    ['j-2/first', runtime(700, 800)],
  ]),
  market: market([]),
};

const of = { snapshot: snapshot({ nowMs: epochMs(NOW) }), forecasts };

it.each(UNLIKE)('is another for a task that differs from the one before in %s', (_, other) => {
  const alike = new Alike();
  const left = leftOfEach(of);
  const tasks = [running(), running(), other, other, running()].map((r) => alike.of(r));
  const answers = tasks.map((r) => [raw(left(r)), raw(leftOf(r, of))]);
  for (const [answer, expected] of answers) expect(answer).toBe(expected);
  expect(answers[2]).not.toEqual(answers[1]);
});

it('is asked of one of those that are alike, and of an instance where they follow each other once', () => {
  const alike = new Alike();
  const [a, b, later] = [running(), running(), running({}, { startedMs: epochMs(NOW - 60_000) })].map((r) =>
    alike.of(r),
  );
  expect(distinctOf([a, b, later, a] as RunningTask[])).toEqual([a, later, a]);
  expect(b?.like).toBe(a);
});
