/** Services as text. */
import type { ServiceExplanationView, ServiceSummaryView, ServiceView } from '../../api/services/schemas.ts';
import { dollars, duration, plural } from '../format.ts';
import type { Output } from '../output.ts';
import { explanation } from './explanation.ts';
import { table, text } from './text-table.ts';

type Paint = Pick<Output, 'colors' | 'columns'>;

export function servicesTable(output: Paint, services: readonly ServiceSummaryView[]): string {
  return table(
    output,
    [
      { title: 'SERVICE', cell: (s) => text(s.name) },
      { title: 'STATE', cell: (s) => stateText(output, s.state) },
      { title: 'REPLICAS', cell: (s) => `${s.replicas.healthy}/${s.replicas.wanted}`, right: true },
      { title: 'RPS', cell: (s) => rpsText(s.rps), right: true },
      { title: 'SLOW', cell: (s) => shareText(s.slowShare), right: true, optional: 1 },
      { title: 'REVISION', cell: (s) => String(s.revision), right: true, optional: 2 },
      { title: 'URL', cell: (s) => s.url ?? '-' },
    ],
    services,
    'no services; begin one with `ebb service apply FILE`',
  );
}

export function stateText({ colors }: Pick<Output, 'colors'>, state: ServiceSummaryView['state']): string {
  switch (state) {
    case 'healthy':
      return colors.green(state);
    case 'failing':
      return colors.red(state);
    case 'degraded':
      return colors.yellow(state);
    default:
      return colors.cyan(state);
  }
}

const rpsText = (rps: number | null): string => (rps === null ? '-' : String(Number(rps.toPrecision(3))));
const shareText = (share: number | null): string =>
  share === null ? '-' : `${Number((100 * share).toPrecision(2))} %`;
export const latencyText = (s: number | null | undefined): string =>
  s === null || s === undefined
    ? '-'
    : s < 1
      ? `${Number((s * 1000).toPrecision(2))} ms`
      : `${Number(s.toPrecision(3))} s`;

/** Everything about a service, a block per question. */
export function serviceStatus(output: Paint, service: ServiceView): string {
  const { colors } = output;
  const label = (name: string): string => colors.dim(name.padEnd(11));
  const { replicas, scaling, load, cost } = service;
  const lines = [
    `${colors.bold(text(service.name))} ${stateText(output, service.state)}  ${text(service.detail)}`,
    `${label('url')}${service.url ?? 'none yet'}`,
    `${label('target')}${service.target.percent} % of requests within ${latencyText(service.target.latencyS)}`,
    `${label('replicas')}${replicas.healthy} healthy of ${replicas.wanted} wanted (${replicas.min} to ${replicas.max}); ${text(scaling.reason)}`,
    `${label('scaling')}${scalingText(service)}`,
    `${label('revision')}${service.revision}${updateText(service)}`,
    ...(service.lastFailure === null ? [] : [`${label('failure')}${colors.yellow(text(service.lastFailure))}`]),
    `${label('load')}${loadText(service)}`,
    `${label('in all')}${sinceText(load)}`,
    `${label('cost')}${dollars(cost.totalUsd)} of ${dollars(cost.onDemandUsd)} on demand for its work, ${dollars(cost.idleUsd)} of it idle`,
  ];
  const chart = sparkline(load.rps, Math.min(90, output.columns - 12));
  if (chart !== '') lines.push(`${label('rps')}${colors.cyan(chart)}`);
  return `${lines.join('\n')}\n\n${replicaTable(output, service)}`;
}

function scalingText({ scaling }: ServiceView): string {
  const capacity =
    scaling.capacityRps === null ? 'capacity not known yet' : `${rpsText(scaling.capacityRps)} rps per replica`;
  const how = scaling.learned ? `${capacity}${scaling.capacityRps === null ? '' : ', learned'}` : capacity;
  return scaling.fixed === null ? `${text(scaling.policy)}, ${how}` : `fixed at ${scaling.fixed}, ${how}`;
}

function updateText({ update }: ServiceView): string {
  if (update === null) return '';
  const from = update.from === null ? '' : ` in place of ${update.from}`;
  const failed = update.failures === 0 ? '' : `, ${plural(update.failures, 'failure')}`;
  return `, coming${from}${failed}`;
}

function loadText({ lastPeriod }: ServiceView): string {
  if (lastPeriod === null) return 'nothing measured yet';
  const { requests, slow, failed, p50S, p95S, p99S, queued } = lastPeriod;
  const [half, most, nearlyAll] = [p50S, p95S, p99S].map(latencyText);
  return `${plural(requests, 'request')} in the last period, ${slow} slow, ${failed} failed; p50 ${half}, p95 ${most}, p99 ${nearlyAll}${queued === 0 ? '' : `; ${queued} waiting`}`;
}

function sinceText({ requests, slow, failed }: ServiceView['load']): string {
  const all = requests + failed;
  return all === 0
    ? 'no requests'
    : `${plural(all, 'request')}, ${shareText((slow + failed) / all)} slow or failed (${slow} slow, ${failed} failed)`;
}

const BARS = '▁▂▃▄▅▆▇█';
/** The newest values as bars, from 0 to the highest; blanks where nothing was measured. */
function sparkline(values: readonly (number | null)[], most: number): string {
  const shown = values.slice(-Math.max(1, most));
  const highest = shown.reduce<number>((top, v) => Math.max(top, v ?? 0), 0);
  if (highest === 0) return '';
  return shown
    .map((v) => (v === null ? ' ' : (BARS[Math.min(BARS.length - 1, Math.floor((v / highest) * BARS.length))] ?? ' ')))
    .join('');
}

function replicaTable(output: Paint, { replicaList, asOf }: ServiceView): string {
  return table(
    output,
    [
      { title: 'REPLICA', cell: (r) => String(r.number), right: true },
      { title: 'REV', cell: (r) => String(r.revision), right: true, optional: 2 },
      { title: 'PHASE', cell: (r) => phaseText(output, r.phase) },
      { title: 'FOR', cell: (r) => duration((Date.parse(asOf) - Date.parse(r.sinceAt)) / 1000), right: true },
      { title: 'POOL', cell: (r) => r.pool ?? '-', optional: 1 },
      { title: 'JOB', cell: (r) => r.job, optional: 3 },
      { title: 'WHY', cell: (r) => text(r.detail ?? ''), wrap: 20 },
    ],
    replicaList,
    'no replicas',
  );
}

function phaseText({ colors }: Pick<Output, 'colors'>, phase: string): string {
  if (phase === 'healthy') return colors.green(phase);
  return phase === 'unhealthy' ? colors.red(phase) : colors.dim(phase);
}

export function serviceExplanationText(output: Paint, view: ServiceExplanationView): string {
  const { colors } = output;
  const blocks = view.replicas.map((r) => {
    const head = `${colors.bold(`replica ${r.number}`)} ${phaseText(output, r.phase)}${r.detail === null ? '' : `  ${text(r.detail)}`}`;
    return r.explanation === null
      ? `${head}\n  no plan has been made for it yet`
      : `${head}\n${explanation(output, r.explanation)}`;
  });
  return [`${colors.bold(text(view.name))} ${text(view.headline)}`, text(view.scaling), '', ...blocks].join('\n');
}
