import { expect, it } from '@jest/globals';
import { countSettled, UNUSED_PLANS } from '../../../lib/cycle/observe/breaker.ts';
import type { Job } from '../../../lib/domain/job.ts';
import { backOffOf, type BackOffs } from '../../../lib/cycle/observe/back-off.ts';
import { WorkingState } from '../../../lib/cycle/state/working-state.ts';
import { effectKey, instanceId } from '../../../lib/kernel/ids.ts';
import { epochMs } from '../../../lib/kernel/units.ts';
import { instance, job, pool } from '../../support/builders.ts';

const empty = () =>
  new WorkingState({ jobs: [], tasks: [], attempts: [], instances: [], openEffects: [], cursors: new Map() });
const at = (minutes: number) => epochMs(minutes * 60_000);

/** The instance of a plan, given back unused or not. */
function settled(
  backOffs: BackOffs,
  plan: number,
  over: { ran?: boolean; minutes?: number; jobs?: readonly Job[] } = {},
) {
  const { jobs = [] } = over;
  const state = empty();
  const of = instance({
    id: instanceId(`i-${plan}`),
    allocation: effectKey(`p-${plan}/launch/0`),
    state: 'ended',
    endCause: 'released',
    ...(jobs.length === 0 ? {} : { boughtFor: jobs.map(({ id }) => ({ job: id, part: 1 / jobs.length })) }),
  });
  const known = new Map(jobs.map((j) => [j.id, j]));
  countSettled(state, { instance: of, ran: over.ran ?? false, jobs: known }, { at: at(over.minutes ?? 0), backOffs });
  return state.takeChanges().flatMap((c) => (c.put === 'event' ? [c.value.type] : []));
}

const isPaused = (backOffs: BackOffs, minutes: number): boolean => backOffOf(backOffs, pool().id, at(minutes)) !== null;

it('pauses purchases after so many plans in a row whose instances were given back unused, and says so', () => {
  const backOffs: BackOffs = new Map();
  for (let plan = 1; plan < UNUSED_PLANS; plan++) expect(settled(backOffs, plan)).toEqual([]);
  expect(isPaused(backOffs, 0)).toBe(false);
  expect(settled(backOffs, UNUSED_PLANS)).toEqual(['purchases-paused']);
  expect(isPaused(backOffs, 9)).toBe(true);
  expect(backOffOf(backOffs, pool().id, at(9))?.why).toMatch(/^nothing is bought until .*given back unused/);
  expect(isPaused(backOffs, 10)).toBe(false);
});

it('pauses twice as long when the next plan is of no use either, and ends when one is', () => {
  const backOffs: BackOffs = new Map();
  for (let plan = 1; plan <= UNUSED_PLANS; plan++) settled(backOffs, plan);
  expect(settled(backOffs, 100, { minutes: 20 })).toEqual(['purchases-paused']);
  expect(isPaused(backOffs, 39)).toBe(true);
  settled(backOffs, 101, { ran: true, minutes: 50 });
  for (let plan = 200; plan < 200 + UNUSED_PLANS - 1; plan++)
    expect(settled(backOffs, plan, { minutes: 60 })).toEqual([]);
});

it('counts instances of one plan once', () => {
  const backOffs: BackOffs = new Map();
  for (let n = 0; n < 3 * UNUSED_PLANS; n++) expect(settled(backOffs, 1)).toEqual([]);
  expect(isPaused(backOffs, 0)).toBe(false);
});

it('counts a plan once whose instances end among those of another', () => {
  const backOffs: BackOffs = new Map();
  for (let n = 0; n < 2 * UNUSED_PLANS; n++) expect(settled(backOffs, n % 2)).toEqual([]);
  expect(isPaused(backOffs, 0)).toBe(false);
});

it('does not count what was bought for jobs that were cancelled, and counts it where another job was to use it', () => {
  const backOffs: BackOffs = new Map();
  const cancelled = job({ name: 'j-cancelled', state: 'cancelled', cancelRequested: true });
  for (let plan = 0; plan < 2 * UNUSED_PLANS; plan++)
    expect(settled(backOffs, plan, { jobs: [cancelled] })).toEqual([]);
  const jobs = [cancelled, job({ name: 'j-other' })];
  const told = Array.from({ length: UNUSED_PLANS }, (_, plan) => settled(backOffs, plan, { jobs })).flat();
  expect(told).toEqual(['purchases-paused']);
});
