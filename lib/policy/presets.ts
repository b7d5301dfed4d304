/** The shipped presets: one policy per stage, by name. */
import { BY_REGIME, FROM_HISTORY } from '../domain/forecast.ts';
import type { PresetSpec } from '../domain/preset-spec.ts';

/** The shipped model that is an LSTM over the last ten prices, as Tributary's is (section 2.2.1). */
const LSTM = '2026-11-21-lstm';

interface Described {
  readonly about: string;
  /** Paper and section, or product, that the preset follows. */
  readonly source: string;
}

export const SHIPPED_PRESETS: Readonly<Record<string, PresetSpec & Described>> = {
  ebbtide: {
    about: 'the default: recurring runs, one MILP, Stratus packing, Tributary diversification',
    source: 'ours; JamaisVu, sections 3 and 4; Stratus, section 3.2; Tributary, section 2.2',
    forecast: BY_REGIME,
    estimate: 'recurring',
    value: 'jvusched',
    appraise: 'cost-and-risk',
    move: 'guard-return-and-consolidate',
    plan: 'milp',
    order: 'urgent-first',
    place: 'stratus-balanced',
    queue: 'short-tasks-wait',
    speculate: 'none',
    scale: 'stratus-tributary',
  },
  tributary: {
    about: 'ebbtide with price losses forecast by the LSTM (Tributary) in place of our choice',
    source: 'Tributary, section 2.2.1',
    extends: 'ebbtide',
    forecast: LSTM,
  },
  greedy: {
    about: 'ebbtide with the greedy plan alone: no solver',
    source: 'ours',
    extends: 'ebbtide',
    plan: 'greedy',
  },
  'on-demand': {
    about: 'packs as ebbtide does, buys on-demand only',
    source: 'baseline',
    extends: 'ebbtide',
    forecast: FROM_HISTORY.chosen,
    appraise: 'without-spot',
    move: 'guard',
    scale: 'on-demand',
  },
  'spot-greedy': {
    about: 'the cheapest spot pool until the last safe moment, then on-demand; waits while there is no spot',
    source: 'greedy of "Can’t Be Late" (NSDI 2024, section 4)',
    extends: 'ebbtide',
    forecast: FROM_HISTORY.chosen,
    move: 'guard',
    plan: 'spot-greedy',
    scale: 'cheapest-spot',
  },
  'uniform-progress': {
    about: 'spot where there is some, on-demand when behind a line of even progress',
    source: '"Can’t Be Late" (NSDI 2024, section 4)',
    extends: 'ebbtide',
    forecast: FROM_HISTORY.chosen,
    move: 'uniform-progress',
    plan: 'uniform-progress',
    scale: 'cheapest-spot',
  },
  fleet: {
    about: 'first come, first served, one task per instance, as EC2 Fleet with price-capacity-optimized',
    source: 'EC2 User Guide, allocation strategies of EC2 Fleet',
    estimate: 'user-hint',
    value: 'strict-priority',
    appraise: 'by-price',
    move: 'stay',
    plan: 'fcfs',
    order: 'as-packed',
    place: 'one-per-instance',
    queue: 'none',
    speculate: 'none',
    scale: 'price-capacity-optimized',
  },
  'spot-fleet': {
    about: 'first come, first served on the cheapest spot pool, as EC2 Fleet with lowestPrice',
    source: 'Spot Fleet’s lowestPrice: Tributary, section 2.1.2; Stratus, section 3.1.1',
    extends: 'fleet',
    place: 'first-fit',
    scale: 'cheapest-spot',
  },
  'stratus-no-clearing': {
    about: 'tasks that end together share instances, bought for the group and type that use most per dollar; no moves',
    source: 'Stratus, sections 3.2.2 and 3.2.3; without clearing: section 3.4.2',
    estimate: 'jvupredict-tasks',
    value: 'strict-priority',
    appraise: 'by-price-at-on-demand',
    move: 'stay',
    plan: 'fcfs',
    order: 'anywhere',
    place: 'stratus',
    queue: 'none',
    speculate: 'none',
    scale: 'stratus',
  },
  stratus: {
    about: 'stratus-no-clearing whose little used instances are cleared',
    source: 'Stratus, section 3.2',
    extends: 'stratus-no-clearing',
    move: 'clearing',
    place: 'stratus-uncleared',
  },
  'no-packing': {
    about: 'one task per instance, of the type that it uses most of per dollar',
    source: 'Stratus, section 3.1.2 (non-packing schedulers)',
    extends: 'stratus-no-clearing',
    place: 'one-per-instance',
    scale: 'stratus-alone',
  },
  hotspot: {
    about: 'one task per instance, the cheapest on which it fits, now and while it runs',
    source: 'HotSpot: Stratus, sections 3.1.2 and 3.3.3',
    extends: 'stratus-no-clearing',
    estimate: 'told',
    move: 'cheaper-instance',
    place: 'one-per-instance',
    scale: 'cheapest-fit',
  },
  supercloud: {
    about: 'packs each batch greedily on new instances; running ones take nothing more',
    source: 'SuperCloud-Spot: Stratus, section 3.3.3',
    extends: 'hotspot',
    place: 'fresh-instances',
    scale: 'supercloud',
  },
  'supercloud-online': {
    about: 'supercloud that also packs running instances, by dot product',
    source: 'Stratus, section 3.4.2',
    extends: 'supercloud',
    place: 'dot-product',
  },
  'supercloud-scaler': {
    about: 'supercloud-online that buys as Stratus does',
    source: 'Stratus, section 3.4.2',
    extends: 'supercloud-online',
    scale: 'stratus',
  },
  'supercloud-clearing': {
    about: 'supercloud-scaler whose little used instances are cleared',
    source: 'Stratus, section 3.4.2',
    extends: 'supercloud-scaler',
    move: 'cheaper-and-clearing',
  },
  fargate: {
    about: 'each task on AWS Fargate, in the smallest size that holds it; needs a market with Fargate',
    source: 'Stratus, section 3.3.3 (AWS Fargate)',
    extends: 'stratus-no-clearing',
    estimate: 'told',
    place: 'one-per-instance',
    scale: 'fargate',
  },
  'fleet-binpack': {
    about: 'the cheapest instance for each task, filled by the least free CPU: Spot Fleet lowestPrice with ECS binpack',
    source: 'Stratus, section 3.3.3 (Spot Fleet + ECS)',
    extends: 'stratus-no-clearing',
    place: 'binpack-cpu',
    scale: 'cheapest-spot',
  },
};
