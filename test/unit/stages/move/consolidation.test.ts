import { describe, expect, it } from '@jest/globals';
import { attemptId, instanceId, jobId } from '../../../../lib/kernel/ids.ts';
import { LEAVING } from '../../../../lib/policy/leaving.ts';
import { DecisionMemory } from '../../../../lib/policy/memory.ts';
import type { DecisionContext, Move } from '../../../../lib/policy/contracts.ts';
import { consolidatingMoves } from '../../../../lib/stages/move/consolidation.ts';
import { job } from '../../../support/builders.ts';
import { exponential, market, NOW, pool, view, worth } from '../../../support/decision-world.ts';
import { scene, told, type HeldFacts, type RunningFacts } from '../../../support/whole-moves.ts';

const HOUR_S = 3600;
const onDemand = { option: 'on-demand' } as const;
const large = pool({ type: 'm5.2xlarge', vcpus: 8, gib: 32, onDemand: 0.4, ...onDemand });
const small = pool({ type: 'm5.large', vcpus: 2, gib: 8, onDemand: 0.1, ...onDemand });
const pools = [view(large, 0.4), view(small, 0.1)];

const on = (id: string, of: typeof large, ...tasks: readonly RunningFacts[]): HeldFacts => ({ id, pool: of, tasks });
const four = (leftS: number, vcpus = 1): RunningFacts[] =>
  ['a', 'b', 'c', 'd'].map((name) => ({ name, leftS, vcpus, gib: 2 }));

type Over = Partial<Pick<DecisionContext, 'forecasts' | 'worths'>>;
const context = (of: Parameters<typeof scene>, over: Over = {}): DecisionContext => ({
  ...scene(...of),
  worths: { groups: new Map(), ofRunning: () => worth(null) },
  ...over,
});
const moved = (held: readonly HeldFacts[], of: Parameters<typeof scene>[2] = {}, from = pools): readonly Move[] =>
  consolidatingMoves(context([from, held, of]), new Set());

describe('consolidation', () => {
  const beside = on('i-busy', large, ...four(2 * HOUR_S));

  it('empties an instance whose work has room beside longer tasks', () => {
    const memory = new DecisionMemory();
    const moves = moved([beside, on('i-lone', large, { name: 'lone', leftS: HOUR_S })], { memory });
    expect(told(moves)).toEqual(['lone -> i-busy']);
    // An hour of 0.4 USD, against 6.7 s of writing 1 GiB here and an eighth of reading it there.
    expect(moves[0]?.savedUsd).toBeGreaterThan(0.39);
    expect(moves[0]?.savedUsd).toBeLessThan(0.4);
    expect(moves[0]?.riskUsd).toBe(0);
    expect(moves[0]?.reason).toContain('can be given back');
    expect(memory.of(LEAVING).has(instanceId('i-lone'))).toBe(true);
    expect(memory.of(LEAVING).has(instanceId('i-busy'))).toBe(false);
  });

  it('leaves work alone that is done before twice the cost of a move is saved', () => {
    const lone = (leftS: number) => [on('i-busy', large, ...four(leftS)), on('i-lone', large, { name: 'lone', leftS })];
    // Of 60 s a tenth at most may be lost, and the move takes 16.7 s.
    expect(moved(lone(60))).toEqual([]);
    expect(told(moved(lone(600)))).toEqual(['lone -> i-busy']);
  });

  it('does not lengthen what costs as much as it saves', () => {
    // The shorter of two equal instances would go; each lasts as long as the longer task.
    const both = [on('i-1', large, { name: 'a', leftS: HOUR_S }), on('i-2', large, { name: 'b', leftS: HOUR_S })];
    expect(moved(both)).toHaveLength(1);
    const dear = [on('i-dear', large, { name: 'a', leftS: HOUR_S }), on('i-cheap', small, { name: 'b', leftS: 60 })];
    expect(told(moved(dear))).toEqual(['a -> i-cheap']);
    const full = [on('i-dear', large, ...four(HOUR_S)), on('i-cheap', small, { name: 'e', leftS: 1800 })];
    expect(told(moved(full))).toEqual(['e -> i-dear']);
  });

  it('moves all of an instance or nothing', () => {
    const full = on('i-full', large, ...four(2 * HOUR_S, 2).slice(0, 3), { name: 'e', leftS: HOUR_S });
    const two = on('i-two', large, { name: 'f', leftS: HOUR_S }, { name: 'g', leftS: HOUR_S, vcpus: 4 });
    expect(moved([full, two])).toEqual([]);
  });

  it('replaces several instances by one that costs less', () => {
    const medium = pool({ type: 'm5.xlarge', vcpus: 4, gib: 16, onDemand: 0.2, ...onDemand });
    const held = ['a', 'b', 'c'].map((name) => on(`i-${name}`, medium, { name, leftS: HOUR_S, vcpus: 3, gib: 8 }));
    const moves = moved(held, {}, [view(medium, 0.2), view(small, 0.1), view(large, 0.3)]);
    expect(new Set(told(moves))).toEqual(new Set(['a', 'b'].map((name) => `${name} -> ${large.id}`)));
    expect(moves[0]?.reason).toContain('2 instances');
  });

  it('moves a task at most once an hour', () => {
    const held = [beside, on('i-lone', large, { name: 'lone', leftS: 3 * HOUR_S })];
    const after = (s: number): readonly Move[] => {
      const of = context([pools, held, { afterS: s }]);
      const instances = new Map(
        [...of.snapshot.instances.values()].map((v) => [
          v.instance.id,
          {
            ...v,
            attempts: v.attempts.map((r) => ({
              ...r,
              attempt: { ...r.attempt, number: 2, startedMs: NOW, movedFrom: attemptId('lone.main.0.1') },
            })),
          },
        ]),
      );
      return consolidatingMoves({ ...of, snapshot: { ...of.snapshot, instances } }, new Set());
    };
    expect(after(HOUR_S - 1)).toEqual([]);
    expect(told(after(HOUR_S))).toEqual(['lone -> i-busy']);
  });

  it('keeps what a deadline has no room for, what runs on-demand off spot, where it is', () => {
    const held = [beside, on('i-lone', large, { name: 'lone', leftS: HOUR_S })];
    const due = { groups: new Map(), ofRunning: () => worth(HOUR_S, 60) };
    expect(consolidatingMoves(context([pools, held], { worths: due }), new Set())).toEqual([]);
    const spot = pool({ type: 'm5.2xlarge', vcpus: 8, gib: 32, onDemand: 0.4 });
    const onSpot = [{ ...beside, pool: spot }, held[1] as HeldFacts];
    const sold = [...pools, view(spot, 0.1)];
    expect(told(moved(onSpot, {}, sold)).filter((m) => m.startsWith('lone'))).toEqual([`lone -> ${small.id}`]);
  });

  it('counts what an interruption takes there', () => {
    const safe = pool({ type: 'm5.2xlarge', vcpus: 8, gib: 32, onDemand: 0.4, zone: 'safe' });
    const risky = pool({ type: 'm5.2xlarge', vcpus: 8, gib: 32, onDemand: 0.4, zone: 'risky' });
    const held = [on('i-risky', risky, ...four(2 * HOUR_S)), on('i-safe', safe, { name: 'lone', leftS: HOUR_S })];
    const of = [[view(safe, 0.1), view(risky, 0.1)], held] as const;
    const hazard = (perHour: number): DecisionContext['forecasts'] => ({
      ...scene(...of).forecasts,
      market: market([...of[0]], (p) => exponential(p.zone === 'risky' ? perHour : 0.001)),
    });
    const risk = (perHour: number): number =>
      consolidatingMoves(context([...of], { forecasts: hazard(perHour) }), new Set()).find(
        (m) => m.running.attempt.job === 'lone',
      )?.riskUsd ?? NaN;
    expect(risk(1)).toBeGreaterThan(risk(0.1));
    expect(risk(0.1)).toBeGreaterThan(0);
  });

  it('counts the time that neighbours there would take, less what those here take', () => {
    // A writer takes twice its time more for each other one.
    const belief = {
      tells: (of: string) => of.includes('writer'),
      tellsAny: () => true,
      slowdown: (of: string, near: readonly { readonly template: string; readonly tasks?: number }[]) => ({
        factor: near.reduce((f, { template, tasks = 1 }) => (template === of ? f + 2 * tasks : f), 1),
        sd: 0,
      }),
    };
    const goes = (held: readonly HeldFacts[], writers: readonly string[]): string[] => {
      const of = context([pools, held]);
      const jobs = new Map(
        held
          .flatMap(({ tasks }) => tasks)
          .map(({ name }) => [
            jobId(name),
            { ...job({ id: jobId(name) }), template: writers.includes(name) ? 'ana/writer/writer' : 'ana/quiet/quiet' },
          ]),
      );
      const beliefs = { of: () => belief, has: () => true } as unknown as DecisionContext['beliefs'];
      return told(consolidatingMoves({ ...of, beliefs, snapshot: { ...of.snapshot, jobs } }, new Set()));
    };
    const lone = on('i-lone', large, { name: 'lone', leftS: HOUR_S });
    expect(goes([beside, lone], ['lone'])).toEqual(['lone -> i-busy']);
    expect(goes([beside, lone], ['a', 'b'])).toEqual(['lone -> i-busy']);
    expect(goes([beside, lone], ['lone', 'a', 'b', 'c', 'd'])).toEqual([`lone -> ${small.id}`]);
    // Two writers slow one another down before the move as much as after it: the move loses no time.
    const two = on('i-two', large, { name: 'e', leftS: HOUR_S }, { name: 'f', leftS: HOUR_S });
    expect(goes([beside, two], ['e', 'f'])).toEqual(['e -> i-busy', 'f -> i-busy']);
  });

  it('leaves alone what takes no work, and what others move', () => {
    const held = [beside, on('i-lone', large, { name: 'lone', leftS: HOUR_S })];
    expect(consolidatingMoves(context([pools, held]), new Set([instanceId('i-lone')]))).toEqual([]);
    const starting = [{ ...beside, state: 'starting' as const }, held[1] as HeldFacts];
    expect(told(moved(starting, {}, [view(large, 0.4)]))).toEqual([]);
    const stopping = [beside, on('i-lone', large, { name: 'lone', leftS: HOUR_S, state: 'stopping' })];
    expect(moved(stopping)).toEqual([]);
  });
});
