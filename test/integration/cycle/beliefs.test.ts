/**
 * Beliefs of a learner that no driver knows by name: policies that declare it read the same in one process, in steps
 * and in the simulator; policies that do not are refused in each of them, in the same words.
 */
import { describe, expect, it } from '@jest/globals';
import type { StageName } from '../../../lib/domain/preset-spec.ts';
import type { SceneContext } from '../../../lib/policy/contracts.ts';
import type { Beliefs, LearnerFactory } from '../../../lib/policy/learner.ts';
import { ownPolicy, type OwnPolicy } from '../../../lib/policy/own/own-policy.ts';
import { withContext } from '../../../lib/policy/policy.ts';
import { runtimeLearner } from '../../../lib/stages/estimate/runtime-learner.ts';
import { POLICY_KIT } from '../../../lib/stages/kit.ts';
import { LEARNERS } from '../../../lib/stages/learners.ts';
import { policyList, presetNamed } from '../../../lib/stages/registry.ts';
import { DiaryLearner, type Diary } from '../../support/diary-learner.ts';
import { EngineBench } from '../../support/engine-bench.ts';
import { mixedJobs, mixedTrace, START_MS } from '../../support/mixed-workload.ts';
import { simulated, simulatedJob } from '../../support/simulated.ts';

const diary: LearnerFactory<Diary> = (terms) => new DiaryLearner(terms);
const SHIPPED = presetNamed('greedy').policies;

/** A shipped policy that looks at what was learned before it answers. */
const reading = (stage: StageName, learners: readonly string[], look: (of: Beliefs) => void): OwnPolicy =>
  ownPolicy(
    {
      stage,
      name: 'reading',
      about: 'under test',
      learners,
      asks: { bids: () => ['uncapped'], held: true, horizon: 'any', prices: true, correlations: true },
      decide: () =>
        withContext(
          stage,
          POLICY_KIT.shipped(stage, SHIPPED[stage]).decide({}),
          <C extends SceneContext>(context: C): C => {
            look(context.beliefs);
            return context;
          },
        ),
    },
    'test.ts',
  );

/** The preset `mine` is `greedy` with this policy in place of one stage. */
async function benched(policy: OwnPolicy, stepped: boolean) {
  const bench = new EngineBench({
    trace: mixedTrace,
    startMs: START_MS,
    stepped,
    vcpus: 12,
    preset: 'mine',
    config: { presets: { mine: { extends: 'greedy', [policy.stage]: 'reading' } } },
    beside: { ownPolicies: [policy], learners: { diary } },
  });
  await bench.submit(mixedJobs().slice(0, 4));
  await bench.drive();
  const refused = (await bench.store.events(0, 10_000)).filter((e) => e.type === 'policy-refused');
  return refused.map((e) => e.text);
}

async function inSimulator(policy: OwnPolicy) {
  const presets = { mine: { extends: 'greedy', [policy.stage]: 'reading' } };
  const { stages, asks, own } = presetNamed('mine', presets, { ownPolicies: [policy], learners: { diary } });
  const jobs = [simulatedJob('a', 0, [400, 1500]), simulatedJob('b', 600, [300])];
  const { events } = await simulated(jobs, {
    deciders: () => ({ name: 'mine', stages, asks, ...(own && { own }) }),
    learners: [diary],
  });
  return events.filter((e) => e.type === 'policy-refused').map((e) => e.text);
}

describe('a policy', () => {
  it.each<StageName>(['estimate', 'place', 'scale'])(
    'of %s that declares a learner reads its beliefs in every driver',
    async (stage) => {
      const sizes = async (run: (of: OwnPolicy) => Promise<readonly string[]>): Promise<readonly number[]> => {
        const seen: number[] = [];
        const look = (beliefs: Beliefs): void => void seen.push(beliefs.of(diary).size);
        expect(await run(reading(stage, ['diary', 'runtimes'], look))).toEqual([]);
        return seen;
      };
      const whole = await sizes((of) => benched(of, false));
      expect(Math.max(...whole)).toBeGreaterThan(1);
      expect(new Set(await sizes((of) => benched(of, true)))).toEqual(new Set(whole));
      expect(Math.max(...(await sizes(inSimulator)))).toBeGreaterThan(1);
    },
  );

  it.each<StageName>(['value', 'place', 'scale'])(
    'of %s that reads one it does not declare is refused in every driver alike',
    async (stage) => {
      const undeclared = reading(stage, ['runtimes'], (beliefs) => void beliefs.of(diary));
      const texts = [await benched(undeclared, false), await benched(undeclared, true), await inSimulator(undeclared)];
      for (const [first] of texts) {
        expect(first).toContain(`your policy ${stage}: reading was refused`);
        expect(first).toContain('reads beliefs of a learner that it does not declare; got diary; allowed: runtimes;');
      }
    },
  );
});

describe('the learners of a policy', () => {
  it('exist: an unknown one is refused with the nearest name', () => {
    const of = reading('place', ['runtime'], () => undefined);
    const make = () => presetNamed('mine', { mine: { extends: 'greedy', place: 'reading' } }, { ownPolicies: [of] });
    expect(make).toThrow('declares a learner that does not exist');
    expect(make).toThrow('did you mean runtimes?');
  });

  it('are what a preset recalls: those of `estimate` before it, others before the decision', () => {
    const ebbtide = presetNamed('ebbtide').learners;
    expect(ebbtide).toEqual({
      estimate: [runtimeLearner],
      decide: [LEARNERS.neighbours, LEARNERS.lateness, LEARNERS['copy-wins']],
      all: [runtimeLearner, LEARNERS.neighbours, LEARNERS.lateness, LEARNERS['copy-wins']],
    });
    expect(presetNamed('fleet').learners.all).toEqual([]);
    const of = reading('scale', ['capacity', 'diary'], () => undefined);
    const presets = { mine: { extends: 'ebbtide', scale: 'reading' } };
    const { learners } = presetNamed('mine', presets, { ownPolicies: [of], learners: { diary } });
    const { neighbours, lateness, capacity } = LEARNERS;
    expect(learners.decide).toEqual([neighbours, lateness, LEARNERS['copy-wins'], capacity, diary]);
    expect(learners.all).toEqual([runtimeLearner, neighbours, lateness, LEARNERS['copy-wins'], capacity, diary]);
  });

  it('are known by their own names, and shipped policies declare no others', () => {
    for (const [name, make] of Object.entries(LEARNERS)) expect(make({ isKept: false }).name).toBe(name);
    expect(policyList().flatMap((p) => p.learners.filter((name) => !Object.hasOwn(LEARNERS, name)))).toEqual([]);
  });
});
