/** Every policy of every stage, and presets made of them. A stage missing in the registry does not compile. */
import type { z } from 'zod';
import { schedulerConfig, type SchedulerConfig } from '../domain/config.ts';
import type { MarketForecast } from '../domain/forecasts.ts';
import { nearestHint, nearestOrAll } from '../domain/nearest-name.ts';
import { PRESET_SETTINGS } from '../domain/preset-settings.ts';
import { isFargate, type Pool } from '../domain/pool.ts';
import { STAGES, type PolicyRef, type PresetSpec, type StageName } from '../domain/preset-spec.ts';
import { EbbError, invariant } from '../kernel/errors.ts';
import { onlyAsked, type BoundAsks } from '../policy/asks.ts';
import { FOOTPRINT_ASKS } from './services/footprints.ts';
import type { AppraisePolicy, SceneContext, Stages, ValueContext } from '../policy/contracts.ts';
import { onlyDeclared, type DeclaredLearners } from '../policy/declared-beliefs.ts';
import type { LearnerFactory } from '../policy/learner.ts';
import { thrownLine, guarded, guardedAsks, guardedBuys } from '../policy/own/guarded.ts';
import type { OwnPolicy } from '../policy/own/own-policy.ts';
import { withReadOnlyInput } from '../policy/own/read-only.ts';
import { Refusals, type OwnInUse } from '../policy/own/refusals.ts';
import { withContext, type Contract, type Policy } from '../policy/policy.ts';
import {
  givenSettings,
  specNamed,
  wholePreset,
  type GivenSettings,
  type KnownPresets,
} from '../policy/preset-chain.ts';
import { SHIPPED_PRESETS } from '../policy/presets.ts';
import type { Solver } from '../policy/solver.ts';
import { APPRAISE } from './appraise/policies.ts';
import { ESTIMATE } from './estimate/policies.ts';
import { LEARNERS } from './learners.ts';
import { MOVE } from './move/policies.ts';
import { ORDER } from './order/policies.ts';
import { PLACE } from './place/policies.ts';
import { PLAN } from './plan/policies.ts';
import { QUEUE } from './queue/policies.ts';
import { SCALE } from './scale/policies.ts';
import { SPECULATE } from './speculate/policies.ts';
import { VALUE } from './value/policies.ts';

const POLICIES: { readonly [Stage in StageName]: readonly Policy<Stage>[] } = {
  estimate: ESTIMATE,
  value: VALUE,
  appraise: APPRAISE,
  move: MOVE,
  plan: PLAN,
  order: ORDER,
  place: PLACE,
  queue: QUEUE,
  speculate: SPECULATE,
  scale: SCALE,
};

export interface Preset {
  readonly name: string;
  readonly about: string;
  readonly source: string;
  readonly stages: Stages<Solver>;
  /** Price forecast, if the setting `forecast` leaves it to the preset; absent: history. */
  readonly forecast?: string;
  /** Name of the policy of each stage. */
  readonly policies: Readonly<Record<StageName, string>>;
  /** Settings that it gives to policies, by stage; stages without any are left out. */
  readonly settings: Readonly<Partial<Record<StageName, PolicySettings>>>;
  /** Settings of the deployment that it sets, for all that reads them (`settingsUnder`). */
  readonly common: GivenSettings;
  /** Questions of its policies to the market's forecast. */
  readonly asks: readonly BoundAsks[];
  /** Learners whose beliefs its policies declare to read, by step: what a process recalls before it. */
  readonly learners: DeclaredBy;
  /** Present where it names a policy of the user's own. */
  readonly own?: OwnInUse<Solver>;
}

export interface DeclaredBy {
  readonly estimate: readonly LearnerFactory[];
  /** Those of all stages after `estimate`. */
  readonly decide: readonly LearnerFactory[];
  readonly all: readonly LearnerFactory[];
}

export type OwnPresets = SchedulerConfig['presets'];

export interface PolicyView {
  readonly stage: StageName;
  readonly name: string;
  readonly about: string;
  readonly source: string;
  readonly learners: readonly string[];
  /** Names of its settings. */
  readonly settings: readonly string[];
}

/** All policies, shipped ones first, in the order of the stages. */
export const policyList = (own: readonly OwnPolicy[] = []): readonly PolicyView[] =>
  STAGES.flatMap((stage) =>
    policiesOf(stage, own).map(({ name, about, source, learners, settings }) => ({
      stage,
      name,
      about,
      source,
      learners,
      settings: Object.keys(settings.shape),
    })),
  );

export type PresetView = Pick<Preset, 'name' | 'about' | 'source' | 'policies' | 'settings' | 'common'>;
type PolicySettings = Readonly<Record<string, unknown>>;

/** Shipped presets first, then the user's own. Throws `usage` for an invalid one. */
export const presetList = (own: OwnPresets = {}, ownPolicies: readonly OwnPolicy[] = []): readonly PresetView[] =>
  [...Object.keys(SHIPPED_PRESETS), ...Object.keys(own)].map((name) => {
    const { about, source, policies, settings, common } = presetNamed(name, own, { ownPolicies });
    return { name, about, source, policies, settings, common };
  });

export interface Beside {
  /** Policies that the user's modules brought. */
  readonly ownPolicies?: readonly OwnPolicy[];
  /** Names beside the presets, for messages. */
  readonly others?: readonly string[];
  /** Learners beside those of every driver, by name. */
  readonly learners?: Readonly<Record<string, LearnerFactory>>;
}

/**
 * A preset, shipped or the user's own. Throws `usage` for an unknown name, with the nearest one, for unknown policies,
 * and for settings that a policy does not have.
 */
export function presetNamed(name: string, own: OwnPresets = {}, beside: Beside = {}): Preset {
  const known = knownWith(own, beside);
  const spec = wholePreset(name, known);
  const { about, source } = specNamed(name, known, undefined);
  const refusals = new Refusals();
  const bound = STAGES.map((stage) =>
    guardedBound(bind(stage, spec, { preset: name, known, refusals }), { name, known, refusals }),
  );
  const policies = bound.flatMap(({ stage, asks, standIn }) =>
    standIn === undefined ? [] : [{ stage, policy: asks.policy, standIn: standIn.asks.policy }],
  );
  return {
    name,
    about: about ?? `your own, from ${own[name]?.extends ?? 'policies of your choice'}`,
    source: source ?? 'your own',
    stages: stagesOf(bound, (b) => b),
    ...(spec.forecast === undefined ? {} : { forecast: spec.forecast }),
    policies: Object.fromEntries(bound.map((b) => [b.stage, b.asks.policy])) as Record<StageName, string>,
    settings: Object.fromEntries(
      STAGES.flatMap((stage) => {
        const { given } = refParts(invariant(spec[stage], 'a bound stage has a policy'));
        return Object.keys(given).length === 0 ? [] : [[stage, given]];
      }),
    ),
    common: givenSettings(spec),
    learners: declaredBy(bound),
    asks: [...bound.flatMap((b) => (b.standIn === undefined ? b.asks : [b.asks, b.standIn.asks])), OF_SERVICES],
    ...(policies.length === 0 ? {} : { own: { policies, refusals, standIns: stagesOf(bound, (b) => b.standIn ?? b) } }),
  };
}

/** The presets, with stand-ins for each policy of the user's own in the named preset: plain data. */
export function withStandIns(name: string, own: OwnPresets, beside: Beside = {}): OwnPresets {
  const known = knownWith(own, beside);
  if (!Object.hasOwn(own, name) || presetNamed(name, own, beside).own === undefined) return own;
  const spec = wholePreset(name, known);
  const shipped = Object.fromEntries(STAGES.map((stage) => [stage, standInRef(stage, name, known)]));
  return { ...own, [name]: { ...spec, extends: undefined, ...shipped } };
}

function declaredBy(bound: readonly Guarded[]): DeclaredBy {
  const of = (some: readonly Guarded[]): readonly LearnerFactory[] => [
    ...new Set(some.flatMap((b) => [b, b.standIn ?? b]).flatMap((b) => [...b.learners.values()])),
  ];
  return {
    estimate: of(bound.filter((b) => b.stage === 'estimate')),
    decide: of(bound.filter((b) => b.stage !== 'estimate')),
    all: of(bound),
  };
}

function stagesOf(bound: readonly Guarded[], policyOf: (of: Guarded) => Bound): Stages<Solver> {
  const policies = bound.map(policyOf);
  const stages = Object.fromEntries(policies.map((p) => [p.stage, p.contract])) as unknown as Stages<Solver>;
  const buys = policies.find((p) => p.stage === 'scale')?.buys;
  const reusesSlots = policies.find((p) => p.stage === 'queue')?.reusesSlots === true;
  return {
    ...stages,
    ...(buys ? { buys, appraise: appraiseOnly(buys, stages.appraise) } : onInstances(stages)),
    ...(reusesSlots && { reusesSlots }),
  };
}

/** Appraises the pools in which the preset may buy. O(pools) for each decision. */
const appraiseOnly = (buys: (pool: Pool) => boolean, appraise: AppraisePolicy): AppraisePolicy =>
  withContext('appraise', appraise, (context) => {
    const { snapshot } = context;
    return { ...context, snapshot: { ...snapshot, pools: snapshot.pools.filter(({ pool }) => buys(pool)) } };
  });

/**
 * Stages of a preset that does not say where it buys: it sees no AWS Fargate, whose pools a market may have beside
 * instances. O(pools) for each decision.
 */
function onInstances({ appraise, move, scale }: Stages<Solver>): Pick<Stages<Solver>, 'appraise' | 'move' | 'scale'> {
  const withoutFargate = <C extends SceneContext>(context: C): C => {
    const { snapshot } = context;
    if (!snapshot.pools.some(({ pool }) => isFargate(pool))) return context;
    return { ...context, snapshot: { ...snapshot, pools: snapshot.pools.filter(({ pool }) => !isFargate(pool)) } };
  };
  return {
    appraise: withContext('appraise', appraise, withoutFargate),
    move: withContext('move', move, withoutFargate),
    scale: withContext('scale', scale, withoutFargate),
  };
}

/**
 * Resolved setting `forecast` of a preset: `history`, `by-regime`, `model` or a version. Throws `usage` for an unknown
 * preset.
 */
export const forecastNamed = (
  setting: string,
  preset: string,
  own: OwnPresets = {},
  ownPolicies: readonly OwnPolicy[] = [],
): string => (setting === 'preset' ? (presetNamed(preset, own, { ownPolicies }).forecast ?? 'history') : setting);

type Known = KnownPresets & Required<Beside>;

const knownWith = (own: OwnPresets, { ownPolicies = [], others = [], learners = {} }: Beside): Known => ({
  own,
  ownPolicies,
  others,
  learners,
});

const policiesOf = (stage: StageName, own: readonly OwnPolicy[]): readonly Policy[] => [
  ...(POLICIES[stage] as readonly Policy[]),
  ...own.filter((p) => p.stage === stage),
];

interface Bound {
  readonly stage: StageName;
  readonly contract: Contract<StageName>;
  readonly asks: BoundAsks;
  readonly learners: DeclaredLearners['learners'];
  readonly buys?: Policy['buys'];
  readonly reusesSlots?: Policy['reusesSlots'];
  readonly isShipped: boolean;
}

interface Guarded extends Bound {
  /** Stand-in of a policy of the user's own. */
  readonly standIn?: Bound;
}

/** A policy of the user's own behind its guard; a shipped one as it is. */
function guardedBound(
  of: Bound,
  { name, known, refusals }: { readonly name: string; readonly known: Known; readonly refusals: Refusals },
): Guarded {
  if (of.isShipped) return of;
  const { stage, asks } = of;
  const standIn = bind(stage, { [stage]: standInRef(stage, name, known) }, { preset: name, known });
  const asNamed = (b: Bound) => ({ policy: b.asks.policy, contract: b.contract });
  const contract = guarded(stage, asNamed(of), asNamed(standIn), refusals);
  const refuse = (why: string) => refusals.add({ stage, policy: asks.policy, why, standIn: standIn.asks.policy });
  const buys = of.buys && guardedBuys(of.buys, refuse);
  return { ...of, contract, ...(buys && { buys }), standIn };
}

/** The nearest shipped policy along the chain of extended presets, else that of the default preset. */
function standInRef(stage: StageName, preset: string, known: Known): PolicyRef {
  for (let at: string | undefined = preset; at !== undefined;) {
    const spec: PresetSpec = specNamed(at, known, undefined);
    const ref = spec[stage];
    if (ref !== undefined && POLICIES[stage].some((p) => p.name === refParts(ref).name)) return ref;
    at = spec.extends;
  }
  return invariant(DEFAULT_POLICIES[stage], `the default preset names no policy for ${stage}`);
}

/** Questions of the policies that buy for services, beside those of any preset. */
const OF_SERVICES: BoundAsks = {
  policy: 'serviceFootprint',
  asks: FOOTPRINT_ASKS,
  configOf: (config) => config,
  isForServices: true,
};

const DEFAULT_POLICIES: PresetSpec = invariant(SHIPPED_PRESETS['ebbtide'], 'the default preset is shipped');

/** The policy that a preset names for a stage, with its settings, and forecasts limited to its declared questions. */
function bind(
  stage: StageName,
  spec: PresetSpec,
  { preset, known, refusals }: { readonly preset: string; readonly known: Known; readonly refusals?: Refusals },
): Bound {
  const ref = spec[stage];
  if (ref === undefined) {
    throw new EbbError('usage', {
      what: `the preset ${preset} names no policy for the stage ${stage}`,
      allowed: POLICIES[stage].map((p) => p.name).join(', '),
      next: `name one, or let the preset extend another: \`extends: ebbtide\``,
    });
  }
  const { name, given } = refParts(ref);
  const of = policyNamed(stage, name, { preset, known });
  const settings = settingsOf(of, given, { stage, preset });
  const configOf = configWith(settings);
  const isShipped = (POLICIES[stage] as readonly Policy[]).includes(of);
  const refuse = (why: string): void => {
    refusals?.add({ stage, policy: of.name, why, standIn: refParts(standInRef(stage, preset, known)).name });
  };
  const asks: BoundAsks = { policy: of.name, asks: isShipped ? of.asks : guardedAsks(of.asks, refuse), configOf };
  const decide = isShipped ? made(of, settings) : withReadOnlyInput(stage, made(of, settings));
  const learners = declaredLearners(stage, of, known);
  return {
    stage,
    contract: scoped(stage, decide, { asks, learners }),
    asks,
    learners,
    ...(of.buys && { buys: of.buys }),
    ...(of.reusesSlots && { reusesSlots: of.reusesSlots }),
    isShipped,
  };
}

/** Throws `usage` for a learner that does not exist. */
function declaredLearners(stage: StageName, { name, learners }: Policy, known: Known): DeclaredLearners['learners'] {
  const all: Readonly<Record<string, LearnerFactory>> = { ...LEARNERS, ...known.learners };
  return new Map(
    learners.map((learner) => {
      const found = Object.hasOwn(all, learner) ? all[learner] : undefined;
      if (found !== undefined) return [learner, found];
      throw new EbbError('usage', {
        what: `the policy ${name} of the stage ${stage} declares a learner that does not exist`,
        got: learner,
        allowed: nearestOrAll(learner, Object.keys(all)),
        next: 'correct `learners` of the policy',
      });
    }),
  );
}

/** Throws `usage` for a policy of the user's own that throws when it is made. */
function made(of: Policy, settings: Readonly<Record<string, unknown>>): Contract<StageName> {
  try {
    return (of.decide as (settings: unknown) => Contract<StageName>)(settings);
  } catch (error) {
    throw new EbbError('usage', {
      what: `the policy ${of.name} throws when it is made: \`decide\` with its settings`,
      got: thrownLine(error),
      next: 'see docs/write-a-policy.md',
    });
  }
}

const refParts = (ref: PolicyRef): { readonly name: string; readonly given: Readonly<Record<string, unknown>> } => {
  if (typeof ref === 'string') return { name: ref, given: {} };
  const { policy: name, ...given } = ref;
  return { name, given };
};

function policyNamed(
  stage: StageName,
  name: string,
  { preset, known }: { readonly preset: string; readonly known: Known },
): Policy {
  const all = policiesOf(stage, known.ownPolicies);
  const found = all.find((p) => p.name === name);
  if (found !== undefined) return found;
  throw new EbbError('usage', {
    what: `the preset ${preset} names a policy that the stage ${stage} does not have`,
    got: name,
    allowed: nearestOrAll(
      name,
      all.map((p) => p.name),
    ),
    next: 'see `ebb config --policies`',
  });
}

function settingsOf(
  { name, settings }: Policy,
  given: Readonly<Record<string, unknown>>,
  { stage, preset }: { readonly stage: StageName; readonly preset: string },
): Readonly<Record<string, unknown>> {
  const parsed = settings.safeParse(given);
  if (parsed.success) return parsed.data;
  const known = Object.keys(settings.shape);
  const says = parsed.error.issues.map((issue) => issueText(issue, known)).join('; ');
  throw new EbbError('usage', {
    what: `settings of ${stage}: ${name} in the preset ${preset} are not valid`,
    got: says,
    allowed: known.length === 0 ? 'it has no settings' : known.join(', '),
    next: 'see `ebb config --policies`',
  });
}

function issueText(issue: z.core.$ZodIssue, known: readonly string[]): string {
  if (issue.code !== 'unrecognized_keys') return `${issue.path.join('.')}: ${issue.message}`;
  const hint = (key: string): string =>
    Object.hasOwn(PRESET_SETTINGS, key)
      ? ' (several stages read it: give it below `settings` of the preset)'
      : known.length === 0
        ? ''
        : ` (${nearestHint(key, known)})`;
  return issue.keys.map((key) => `${key} is no setting of it${hint(key)}`).join(', ');
}

/** A shipped policy of a stage, without a preset. Throws `usage` for an unknown name, with the nearest one. */
export const shippedPolicy = <Stage extends StageName>(stage: Stage, name: string): Policy<Stage> =>
  policyNamed(stage, name, {
    preset: 'of `kit.shipped`',
    known: knownWith({}, {}),
  }) as Policy<Stage>;

const DEPLOYMENT = Symbol('settings of the deployment');
type ScopedConfig = SchedulerConfig & { readonly [DEPLOYMENT]?: SchedulerConfig };

/**
 * Keeps the last answer, so that settings that stay the same are the same object. This is no memory of decisions: the
 * answer follows from its argument alone, bids are asked for without a decision, and one object is kept for each policy
 * of a preset.
 */
function configWith(settings: Readonly<Record<string, unknown>>): BoundAsks['configOf'] {
  const own = Object.entries(settings).filter(([key, value]) => key in schedulerConfig.shape && value !== undefined);
  if (own.length === 0) return (config: ScopedConfig) => config[DEPLOYMENT] ?? config;
  let last: { readonly of: SchedulerConfig; readonly with: SchedulerConfig } | null = null;
  return (given: ScopedConfig) => {
    const of = given[DEPLOYMENT] ?? given;
    if (last?.of !== of) {
      const merged: ScopedConfig = {
        ...of,
        ...(Object.fromEntries(own) as Partial<SchedulerConfig>),
        [DEPLOYMENT]: of,
      };
      last = { of, with: merged };
    }
    return last.with;
  };
}

/**
 * Gives a policy its own settings, and forecasts and beliefs limited to what it declares, even if another policy hands
 * its context on.
 */
function scoped(
  stage: StageName,
  contract: Contract<StageName>,
  { asks, learners }: Pick<Bound, 'asks' | 'learners'>,
): Contract<StageName> {
  const own = <C extends SceneContext>(context: C): C => {
    const config = asks.configOf(context.config);
    const beliefs = onlyDeclared(context.beliefs, { policy: asks.policy, learners });
    if (!('forecasts' in context)) return { ...context, config, beliefs };
    const { forecasts, snapshot } = context as C & ValueContext;
    const market: MarketForecast = onlyAsked(forecasts.market, asks, { snapshot, config });
    return { ...context, config, beliefs, forecasts: { runtime: forecasts.runtime, market } };
  };
  return withContext(stage, contract, own);
}
