import type { Drift, DriftRisk } from '../../market/forecast/drift.ts';
import { plural } from '../format.ts';
import type { Output } from '../output.ts';
import { table } from './text-table.ts';

/** Drift as the API and a directory give it. */
interface Shown {
  readonly overall: Drift;
  readonly pools: readonly { readonly pool: string; readonly drift: Drift }[];
}

interface Page {
  readonly risk: DriftRisk;
  /** Forecasts behind the purchases: `forecasts of ...`. */
  readonly whose: string;
  /** Most pools shown. */
  readonly limit: number;
  /** Number of further pools. */
  readonly rest: number;
}

/** Drift of bought instances: interruptions forecast and observed. */
export function driftText(output: Pick<Output, 'colors' | 'columns'>, { overall, pools }: Shown, page: Page): string {
  if (overall.instances === 0) return `Drift: no spot instance that is known was bought by ${page.whose}`;
  const head = `Drift: ${plural(overall.instances, 'spot instance')} bought by ${page.whose}, ${overall.hours.toFixed(1)} hours: ${overall.expected.toFixed(2)} interruptions ${page.risk === 'capacity' ? 'for want of capacity ' : ''}expected, ${overall.observed} came; ${verdict(overall)}`;
  const column = (title: string, cell: (d: Drift) => string) => ({
    title,
    cell: ({ drift }: Shown['pools'][number]) => cell(drift),
    right: true,
  });
  const columns = [
    { title: 'POOL', cell: ({ pool }: Shown['pools'][number]) => pool, wrap: 22 },
    column('INSTANCES', (d) => String(d.instances)),
    column('HOURS', (d) => d.hours.toFixed(1)),
    column('EXPECTED', (d) => d.expected.toFixed(2)),
    column('CAME', (d) => String(d.observed)),
    column('CAME BY EXPECTED', ratioText),
  ];
  const shown = pools.slice(0, page.limit);
  const rest = page.rest + pools.length - shown.length;
  return [
    head,
    table(output, columns, shown, 'no pools'),
    ...(rest > 0 ? [`... and ${plural(rest, 'more pool')}`] : []),
  ].join('\n');
}

const ratioText = ({ ratio }: Drift): string =>
  ratio === null ? '-' : `${ratio.value.toFixed(2)} [${ratio.low.toFixed(2)}, ${ratio.high.toFixed(2)}]`;

function verdict(drift: Drift): string {
  const { ratio } = drift;
  if (ratio === null) return 'nothing to compare';
  const said = `${ratioText(drift)} times as many (95 % interval; what is taken at once in a pool is one event)`;
  if (ratio.low > 1) return `${said}: more than forecast`;
  return ratio.high < 1 ? `${said}: fewer than forecast` : `${said}: no drift is shown`;
}
