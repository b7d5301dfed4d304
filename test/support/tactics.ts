import { describe, expect, it } from '@jest/globals';
import type { PresetSpec } from '../../lib/domain/preset-spec.ts';
import type { Deciders } from '../../lib/drivers/sim/simulation.ts';
import type { Stages } from '../../lib/policy/contracts.ts';
import type { Solver } from '../../lib/policy/solver.ts';
import { presetList, presetNamed } from '../../lib/stages/registry.ts';

/** Which presets have a tactic, and which stage it comes with: one scenario for each, under every preset. */

/** Presets that differ from `fifo` in the order of jobs and in copies alone, as shipped. */
export const SHORT_OF_MACHINES = [
  'slearn',
  '3sigma',
  '3sigma-tl',
  'point-est',
  'srpt-fused',
  'srpt-speculation',
  'fair-speculation',
  'srpt-copies',
  'hopper',
];

/** Presets that differ from `fifo` in the order of jobs and in the choice among instances that are there. */
export const BY_NEIGHBOURS = ['round-robin', 'fifo-random', 'mary', 'hugo', 'hugo-star', 'good-neighbours'] as const;

const SHIPPED = [
  'ebbtide',
  'tributary',
  'greedy',
  'on-demand',
  'spot-greedy',
  'uniform-progress',
  'fleet',
  'spot-fleet',
  'stratus-no-clearing',
  'stratus',
  'fifo',
  'resource-aware',
  'eva',
  ...BY_NEIGHBOURS,
  'srpt',
  'jvusched',
  'jvusched-greedy',
  'jvusched-base',
  'prio',
  'las',
  ...SHORT_OF_MACHINES,
  'no-packing',
  'hotspot',
  'supercloud',
  'supercloud-online',
  'supercloud-scaler',
  'supercloud-clearing',
  'fargate',
  'fleet-binpack',
] as const;
type Shipped = (typeof SHIPPED)[number];

type Swap = (stages: Stages<Solver>) => Stages<Solver>;

/** A preset of the test: by policies, or with part of a policy taken out. */
export interface Mixed {
  readonly about: string;
  readonly preset: PresetSpec;
  readonly swap?: Swap;
  readonly acts: boolean;
}

export interface Tactic {
  readonly tactic: string;
  readonly acts: (deciders: Deciders) => Promise<boolean>;
  /** Shipped presets under which it acts. Under all others it does not. */
  readonly under: readonly Shipped[];
  /** Proof of the stage: `ebbtide` without its policy does not act. */
  readonly mixed: readonly Mixed[];
}

/** `ebbtide` with another policy of one stage. */
export const without = (about: string, preset: PresetSpec): Mixed => ({
  about: `ebbtide with ${about}`,
  preset: { extends: 'ebbtide', ...preset },
  acts: false,
});

/** A preset that has not got the tactic, with the policy that brings it. */
export const bringing = (about: string, preset: PresetSpec): Mixed => ({ about, preset, acts: true });

function deciders(name: string, preset?: PresetSpec, swap: Swap = (stages) => stages): Deciders {
  const { stages, asks } = presetNamed(name, preset === undefined ? {} : { [name]: preset });
  return { name, stages: swap(stages), asks };
}

export function describeTactic({ tactic, acts, under, mixed }: Tactic): void {
  describe(tactic, () => {
    it.each(SHIPPED.map((preset) => ({ preset, expected: under.includes(preset) })))(
      'under $preset: $expected',
      async ({ preset, expected }) => {
        expect(await acts(deciders(preset))).toBe(expected);
      },
    );

    it.each(mixed)('under $about: $acts', async ({ preset, swap, acts: expected }) => {
      expect(await acts(deciders('mixed', preset, swap))).toBe(expected);
    });

    it('is told of every shipped preset, and of ebbtide without it', () => {
      expect(presetList().map((p) => p.name)).toEqual(SHIPPED);
      expect(mixed.some((m) => m.preset.extends === 'ebbtide' && !m.acts)).toBe(true);
    });
  });
}
