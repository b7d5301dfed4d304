/** Why a preset is dearer than the lower bound, in one sentence from the ledger: the parts of the difference. */
import { dollars, percent, ratio } from './client/format.ts';
import type { PresetFigures } from './figures.ts';

/** Parts below this share of the difference are not worth a word. */
const LEAST_SHARE = 0.02;

/**
 * Parts, per run: idle time, lost work, charges that were refunded, and work at higher prices than the bound's. They
 * sum to charges before refunds less the bound. Null: no bound is known, or the preset is not dearer.
 */
export function excessText(p: PresetFigures): string | null {
  const { preset, toBound, lowerBoundUsd, costUsd } = p;
  if (toBound === null || toBound.value === null || lowerBoundUsd === null || costUsd.value === null) return null;
  const excessUsd = costUsd.value + p.refundedUsd - lowerBoundUsd;
  if (!(toBound.value > 1) || !(excessUsd > 0)) return null;
  const parts = [
    { usd: p.idleUsd, text: 'idle' },
    { usd: p.wastedUsd, text: `in lost work (${taken(p)})` },
    { usd: p.refundedUsd, text: 'in hours that were refunded' },
    { usd: p.workUsd - lowerBoundUsd, text: `in work above the bound's prices${onDemandPart(p)}` },
  ]
    .filter(({ usd }) => usd > LEAST_SHARE * excessUsd)
    .sort((a, b) => b.usd - a.usd);
  const why = parts.map(({ usd, text }) => `${dollars(usd)} ${text}`).join(', ');
  return `${preset} costs ${ratio(toBound.value)} times the lower bound of ${dollars(lowerBoundUsd)}: ${why}.`;
}

const taken = ({ interruptions: { value } }: PresetFigures): string =>
  `${Number((value ?? 0).toFixed(1))} interruptions`;

function onDemandPart({ onDemandBillUsd, costUsd }: PresetFigures): string {
  const share = onDemandBillUsd / (costUsd.value ?? NaN);
  return share > 0 ? ` (${percent(share)} of the bill is on-demand)` : '';
}
