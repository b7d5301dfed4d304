import type { CostReport, InstanceView, PlanView, PoolView } from '../../api/schemas.ts';
import { dollars, instant, percent, plural, rate, shorten } from '../format.ts';
import type { Output } from '../output.ts';
import { table, text, type Column } from './text-table.ts';

type Paint = Pick<Output, 'colors' | 'columns'>;

/** Shown only where attempts were superseded. */
const speculative: Column<CostReport['rows'][number]> = {
  title: 'SPECULATIVE',
  cell: (r) => dollars(r.speculativeUsd),
  right: true,
  optional: 1,
};

/** Shown only where tasks moved. */
const moved: Column<CostReport['rows'][number]> = {
  title: 'MOVED',
  cell: (r) => dollars(r.movedUsd),
  right: true,
  optional: 1,
};

export function costTable(output: Paint, report: CostReport): string {
  const rows = report.rows.length === 0 ? [] : [...report.rows, { key: 'total', ...report.total }];
  return table(
    output,
    [
      { title: report.by.toUpperCase(), cell: (r) => shorten(text(r.key), 48), wrap: 24 },
      { title: 'WORK', cell: (r) => dollars(r.workUsd), right: true, optional: 2 },
      { title: 'WASTED', cell: (r) => dollars(r.wastedUsd), right: true, optional: 1 },
      ...(report.total.speculativeUsd > 0 ? [speculative] : []),
      ...(report.total.movedUsd > 0 ? [moved] : []),
      { title: 'IDLE', cell: (r) => dollars(r.idleUsd), right: true },
      { title: 'TOTAL', cell: (r) => dollars(r.totalUsd), right: true },
      { title: 'ON ON-DEMAND', cell: (r) => dollars(r.onDemandUsd), right: true, optional: 3 },
      { title: 'SAVED', cell: savedCell, right: true },
      { title: 'INSTANCE-HOURS', cell: (r) => r.instanceHours.toFixed(2), right: true, optional: 4 },
    ],
    rows,
    'nothing has been spent',
  );
}

/** Saved share; above twice the on-demand price, the factor: tasks of seconds pay for the start of an instance. */
function savedCell({ totalUsd, onDemandUsd }: CostReport['total']): string {
  if (!(onDemandUsd > 0)) return '-';
  const times = totalUsd / onDemandUsd;
  return times > 2 ? `paid ${times < 10 ? times.toFixed(1) : times.toFixed(0)}x` : percent(1 - times);
}

export const poolsTable = (output: Paint, pools: readonly PoolView[]): string =>
  table(
    output,
    [
      { title: 'POOL', cell: (p) => p.id, wrap: 24 },
      { title: 'ARCH', cell: (p) => p.arch, optional: 3 },
      { title: 'VCPU', cell: (p) => String(p.capacity.cpus), right: true },
      { title: 'GIB', cell: (p) => String(Math.round((p.capacity.memoryMiB / 1024) * 10) / 10), right: true },
      { title: 'GPU', cell: (p) => String(p.capacity.gpus), right: true, optional: 4 },
      { title: 'PRICE', cell: (p) => rate(p.priceUsdPerHour), right: true },
      {
        title: '24 H',
        cell: (p) =>
          p.lowUsdPerHour === null || p.highUsdPerHour === null
            ? '-'
            : `${p.lowUsdPerHour.toFixed(4)} to ${p.highUsdPerHour.toFixed(4)}`,
        right: true,
        optional: 5,
      },
      { title: 'ON-DEMAND', cell: (p) => rate(p.onDemandUsdPerHour), right: true, optional: 1 },
      { title: 'HELD', cell: (p) => (p.liveInstances === 0 ? '' : String(p.liveInstances)), right: true, optional: 2 },
    ],
    pools,
    'no pool matches',
  );

/** State of an instance with its cause, in a word or two. */
export function lifeText(i: InstanceView): string {
  if (i.state === 'ended') return i.endCause ?? 'ended';
  return i.rebalance && i.state === 'ready' ? 'ready (at risk)' : i.state;
}

export const instancesTable = (output: Paint, instances: readonly InstanceView[]): string =>
  table(
    output,
    [
      { title: 'INSTANCE', cell: (i) => i.id },
      { title: 'POOL', cell: (i) => i.pool, wrap: 22 },
      { title: 'BID', cell: (i) => (i.bid === 'uncapped' ? 'uncapped' : rate(i.bid)), right: true, optional: 4 },
      { title: 'STATE', cell: lifeText },
      { title: 'SINCE (UTC)', cell: (i) => instant(i.launchedAt ?? i.requestedAt), wrap: 10, optional: 2 },
      { title: 'ENDED (UTC)', cell: (i) => instant(i.endedAt), wrap: 10, optional: 3 },
      { title: 'COST', cell: (i) => (i.costUsd === null ? '-' : dollars(i.costUsd)), right: true },
      { title: 'RUNS', cell: (i) => runsText(i), wrap: 12 },
      { title: 'FOR JOBS', cell: (i) => boughtForText(i), wrap: 8, optional: 1 },
    ],
    instances,
    'no instances',
  );

function runsText({ running }: InstanceView): string {
  const shown = running.slice(0, 3).map((r) => `${text(r.stage)}[${r.index}]`);
  return running.length > 3 ? `${shown.join(' ')} +${running.length - 3}` : shown.join(' ');
}

/** `render, etl +2`: jobs, the largest part first; ids for forgotten names. */
function boughtForText({ boughtFor }: InstanceView): string {
  const shown = boughtFor.slice(0, 2).map(({ job, name }) => text(name ?? job));
  return shown.join(', ') + (boughtFor.length > 2 ? ` +${boughtFor.length - 2}` : '');
}

/** `2 launches, 1 start`: effects of a plan, counted. */
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
      { title: 'AT (UTC)', cell: (p) => instant(p.at), wrap: 10 },
      { title: 'DID', cell: effectsText, wrap: 12 },
      { title: 'BY', cell: (p) => `${p.solve.used} (${p.solve.status})`, wrap: 13, optional: 1 },
      { title: 'WORTH', cell: (p) => dollars(p.solve.objective), right: true, optional: 2 },
      { title: 'GAP', cell: (p) => (p.solve.gap === null ? '-' : percent(p.solve.gap)), right: true, optional: 3 },
      { title: 'TOOK', cell: (p) => `${Math.round(p.solve.elapsedMs)} ms`, right: true, optional: 4 },
    ],
    plans,
    'no decision has been made yet',
  );
