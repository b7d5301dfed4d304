import type { CostReport, InstanceView, PlanView, PoolView } from '../../api/schemas.ts';
import { dollars, instant, percent, plural, rate, shorten } from '../format.ts';
import type { Output } from '../output.ts';
import { table, text } from './table.ts';

type Paint = Pick<Output, 'colors'>;

export function costTable(output: Paint, report: CostReport): string {
  const rows = report.rows.length === 0 ? [] : [...report.rows, { key: 'total', ...report.total }];
  return table(
    output,
    [
      { title: report.by.toUpperCase(), cell: (r) => shorten(text(r.key), 48) },
      { title: 'WORK', cell: (r) => dollars(r.workUsd), right: true },
      { title: 'WASTED', cell: (r) => dollars(r.wastedUsd), right: true },
      { title: 'IDLE', cell: (r) => dollars(r.idleUsd), right: true },
      { title: 'TOTAL', cell: (r) => dollars(r.totalUsd), right: true },
      { title: 'ON ON-DEMAND', cell: (r) => dollars(r.onDemandUsd), right: true },
      { title: 'SAVED', cell: (r) => (r.onDemandUsd > 0 ? percent(1 - r.totalUsd / r.onDemandUsd) : '-'), right: true },
      { title: 'INSTANCE-HOURS', cell: (r) => r.instanceHours.toFixed(2), right: true },
    ],
    rows,
    'nothing has been spent',
  );
}

export const poolsTable = (output: Paint, pools: readonly PoolView[]): string =>
  table(
    output,
    [
      { title: 'POOL', cell: (p) => p.id },
      { title: 'ARCH', cell: (p) => p.arch },
      { title: 'VCPU', cell: (p) => String(p.capacity.cpus), right: true },
      { title: 'GIB', cell: (p) => String(Math.round((p.capacity.memoryMiB / 1024) * 10) / 10), right: true },
      { title: 'GPU', cell: (p) => String(p.capacity.gpus), right: true },
      { title: 'PRICE', cell: (p) => rate(p.priceUsdPerHour), right: true },
      {
        title: '24 H',
        cell: (p) =>
          p.lowUsdPerHour === null || p.highUsdPerHour === null
            ? '-'
            : `${p.lowUsdPerHour.toFixed(4)} to ${p.highUsdPerHour.toFixed(4)}`,
        right: true,
      },
      { title: 'ON-DEMAND', cell: (p) => rate(p.onDemandUsdPerHour), right: true },
      { title: 'HELD', cell: (p) => (p.liveInstances === 0 ? '' : String(p.liveInstances)), right: true },
    ],
    pools,
    'no pool matches',
  );

/** Why an instance is where it is in its life, in a word or two. */
export function lifeText(i: InstanceView): string {
  if (i.state === 'ended') return i.endCause ?? 'ended';
  return i.rebalance && i.state === 'ready' ? 'ready (at risk)' : i.state;
}

export const instancesTable = (output: Paint, instances: readonly InstanceView[]): string =>
  table(
    output,
    [
      { title: 'INSTANCE', cell: (i) => i.id },
      { title: 'POOL', cell: (i) => i.pool },
      { title: 'BID', cell: (i) => (i.bid === 'uncapped' ? 'uncapped' : rate(i.bid)), right: true },
      { title: 'STATE', cell: lifeText },
      { title: 'SINCE (UTC)', cell: (i) => instant(i.launchedAt ?? i.requestedAt) },
      { title: 'ENDED (UTC)', cell: (i) => instant(i.endedAt) },
      { title: 'COST', cell: (i) => (i.costUsd === null ? '-' : dollars(i.costUsd)), right: true },
      { title: 'RUNS', cell: (i) => runsText(i) },
    ],
    instances,
    'no instances',
  );

function runsText({ running }: InstanceView): string {
  const shown = running.slice(0, 3).map((r) => `${text(r.stage)}[${r.index}]`);
  return running.length > 3 ? `${shown.join(' ')} +${running.length - 3}` : shown.join(' ');
}

/** `2 launches, 1 start`: what a plan did, counted. */
export function effectsText(plan: Pick<PlanView, 'effects'>): string {
  const words = {
    launch: ['launch', 'launches'],
    start: ['start', 'starts'],
    stop: ['stop', 'stops'],
    release: ['release', 'releases'],
  } as const;
  const parts = Object.entries(words).flatMap(([kind, [one, many]]) => {
    const n = plan.effects.filter((e) => e.kind === kind).length;
    return n === 0 ? [] : [plural(n, one, many)];
  });
  return parts.length === 0 ? 'nothing to do' : parts.join(', ');
}

export const plansTable = (output: Paint, plans: readonly PlanView[]): string =>
  table(
    output,
    [
      { title: 'PLAN', cell: (p) => p.id },
      { title: 'AT (UTC)', cell: (p) => instant(p.at) },
      { title: 'DID', cell: effectsText },
      { title: 'BY', cell: (p) => `${p.solve.used} (${p.solve.status})` },
      { title: 'WORTH', cell: (p) => dollars(p.solve.objective), right: true },
      { title: 'GAP', cell: (p) => (p.solve.gap === null ? '-' : percent(p.solve.gap)), right: true },
      { title: 'TOOK', cell: (p) => `${Math.round(p.solve.elapsedMs)} ms`, right: true },
    ],
    plans,
    'no decision has been made yet',
  );
