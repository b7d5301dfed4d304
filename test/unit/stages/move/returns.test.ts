import { describe, expect, it } from '@jest/globals';
import { returnMoves } from '../../../../lib/stages/move/returns.ts';
import { certain } from '../../../../lib/domain/distribution.ts';
import { seconds } from '../../../../lib/kernel/units.ts';
import { due, flat, handmade, HOUR_S, ON_DEMAND, type Handmade } from '../../../support/handmade-plan.ts';

const TEN_HOURS = certain(seconds(10 * HOUR_S));

/** A task that fills a machine of 0.2 USD/h on demand, ten hours to go, its deadline a day away; spot at 0.08. */
const input = (
  over: Partial<Handmade['running'] extends readonly (infer R)[] | undefined ? R : never> = {},
  world: Handmade = {},
) =>
  handmade({
    running: [
      {
        name: 'long',
        instance: 'i-1',
        pool: ON_DEMAND,
        tasks: 1,
        cpus: 4,
        class: 'deadline',
        runtime: TEN_HOURS,
        worth: due(2000, 24 * HOUR_S, 13 * HOUR_S),
        ...over,
      },
    ],
    pInterrupted: 0.05,
    ...world,
  });

describe('work on on-demand returns to spot', () => {
  it('where there is spot, slack, and much to save, and says what it saves', () => {
    const moves = returnMoves(input());
    expect(moves.map((m) => m.to)).toEqual(['spot']);
    // Ten hours cost 2 USD there. At 5 % an hour spot lasts (1 - 0.95^10) / -ln 0.95 = 7.8 hours of them, 0.12 USD/h
    // cheaper: 0.94.
    const saved = Number(/save \$([\d.]+) of the \$2/.exec(moves[0]?.reason ?? '')?.[1]);
    // Without a checkpoint an interruption (40 %) loses half of those hours: 0.4 x 0.2 x 3.9 = 0.31.
    expect(saved).toBeGreaterThan(0.58);
    expect(saved).toBeLessThan(0.66);
  });

  it('stays without slack for the way there and back', () => {
    // There: 30 s to save, 160 s to start, 10 s to restore, two cycles; two more before the guard: 440 s.
    expect(returnMoves(input({ worth: due(0.1, 11 * HOUR_S, 430) }))).toEqual([]);
    expect(returnMoves(input({ worth: due(0.1, 11 * HOUR_S, 450) }))).toHaveLength(1);
  });

  it('stays where an interruption would lose more worth than spot saves', () => {
    expect(returnMoves(input({ worth: due(2000, 11 * HOUR_S, 450) }))).toEqual([]);
  });

  it('stays where spot saves too little, is taken too soon, or cannot be had', () => {
    expect(returnMoves(input({}, { spotUsd: 0.19 }))).toEqual([]);
    expect(returnMoves(input({}, { pInterrupted: 0.9999 }))).toEqual([]);
    expect(returnMoves(input({}, { spotOpen: false }))).toEqual([]);
    expect(returnMoves(input({ runtime: certain(seconds(60)), doneS: 0 }))).toEqual([]);
  });

  it('stays on reserved capacity, on spot, in a gang, and on an instance that is not up', () => {
    expect(returnMoves(input({ gang: true }))).toEqual([]);
    expect(returnMoves(input({ pool: { ...ON_DEMAND, option: 'reserved' } }))).toEqual([]);
    expect(returnMoves(input({ pool: { ...ON_DEMAND, option: 'spot' } }))).toEqual([]);
    expect(returnMoves(input({ state: 'starting' }))).toEqual([]);
  });

  it('moves work without a deadline too, and all tasks of an instance or none', () => {
    expect(returnMoves(input({ class: 'best-effort', worth: flat(5) }))).toHaveLength(1);
    expect(returnMoves(input({ tasks: 4, cpus: 1 }))).toHaveLength(4);
  });

  it('stays for the way there after it has moved, so that it cannot alternate with the guard', () => {
    expect(returnMoves(input({ number: 2, ranS: 310 }))).toEqual([]);
    expect(returnMoves(input({ number: 2, ranS: 330 }))).toHaveLength(1);
    expect(returnMoves(input({ number: 1, ranS: 0 }))).toHaveLength(1);
  });

  it('counts nothing for what is left of an hour that is charged', () => {
    // The instance was launched now. Of 50 minutes nothing is to be paid any more, of ten hours nine are.
    const minutes = certain(seconds(3000));
    const saving = (world: Handmade, runtime = minutes): number =>
      Number(/save \$([\d.]+) /.exec(returnMoves(input({ runtime }, world))[0]?.reason ?? '')?.[1]);
    expect(saving({})).toBeGreaterThan(0);
    expect(saving({ config: { billing: 'per-hour' } })).toBeNaN();
    const whole = saving({}, TEN_HOURS);
    expect(saving({ config: { billing: 'per-hour' } }, TEN_HOURS)).toBeLessThan(whole);
  });
});
