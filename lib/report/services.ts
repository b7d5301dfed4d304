/** Services of a comparison: how their requests were answered under each preset, and what that cost. */
import { count, dollars, duration, percent, ratio } from './client/format.ts';
import type { Comparison, PresetFigures, ServiceFigures } from './figures.ts';
import { html, type Markup } from './markup.ts';
import { figure, hasFigures, tableOf, type Column } from './tables.ts';

/** One service under one preset. */
export interface ServiceRow extends ServiceFigures {
  readonly preset: string;
}

/** By service, then in the order of the presets. */
export const serviceRows = (presets: readonly PresetFigures[]): readonly ServiceRow[] =>
  presets
    .flatMap(({ preset, services }) => services.map((of) => ({ ...of, preset })))
    .toSorted((a, b) => (a.service < b.service ? -1 : Number(a.service > b.service)));

/** True if more requests were slow than the service's target allows. */
export const isMissed = ({ slowShare, maySlow }: ServiceFigures): boolean => (slowShare.value ?? 0) > maySlow;

/** Services that missed their target, in words. */
export const servicesMissed = ({ services }: Pick<PresetFigures, 'services'>): readonly string[] =>
  services
    .filter(isMissed)
    .map(
      (of) =>
        `${percent(of.slowShare.value ?? NaN)} of the requests to ${of.service} slower than ${duration(of.latencyS)} or failed (allowed: ${percent(of.maySlow)})`,
    );

const COLUMNS: readonly Column<ServiceRow>[] = [
  { title: 'Service', hint: 'name', cell: (s) => html`${s.service}` },
  { title: 'Requests', hint: 'per run', cell: (s) => html`${count(s.requests)}` },
  {
    title: 'Slow',
    hint: 'share of the requests that took longer than the target allows, failed ones among them',
    cell: (s) => html`${figure(s.slowShare, percent)}<span class="interval">${percent(s.maySlow)} allowed</span>`,
    bad: isMissed,
  },
  { title: 'Failed', hint: 'share of the requests', cell: (s) => figure(s.failedShare, percent) },
  { title: 'Replica-hours', hint: 'of replicas that served, per run', cell: (s) => html`${count(s.replicaHours, 1)}` },
  {
    title: 'Interruptions',
    hint: 'replicas that the market took, per run',
    cell: (s) => html`${count(s.interruptions, 1)}`,
  },
  {
    title: 'Cost',
    hint: 'charges of its replicas with their part of what idled, per run, USD',
    cell: (s) => figure(s.costUsd, dollars),
  },
  {
    title: 'Of on-demand prices',
    hint: 'cost over the work of its replicas at the on-demand prices of their instances',
    cell: (s) => figure(s.toOnDemandPrices, ratio),
  },
];

/** Null without services. */
export function servicesSection({ presets }: Comparison): Markup | null {
  const rows = serviceRows(presets);
  if (rows.length === 0) return null;
  return html`<section aria-labelledby="services-title">
    <h2 id="services-title">Services</h2>
    ${tableOf('Preset', COLUMNS.filter(hasFigures(rows)), rows, (s) => s.preset)}
    <p class="note">Replicas are in no table of jobs. Their charges are part of the cost of each preset.</p>
  </section>`;
}
