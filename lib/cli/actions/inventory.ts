import { resolve } from 'node:path';
import type {
  CostReport,
  DriftView,
  ForecastList,
  InstanceList,
  JobList,
  NeighboursView,
  PlanList,
  PoolView,
} from '../../api/schemas.ts';
import { MAX_COST_ROWS } from '../../api/requests.ts';
import { EbbError } from '../../kernel/errors.ts';
import { all, type Client } from '../client.ts';
import type { Action } from '../context.ts';
import { json, type Output } from '../output.ts';
import { routes } from '../routes.ts';
import type { DriftRisk } from '../../market/forecast/drift.ts';
import { driftText } from '../views/drift.ts';
import { forecastsTable, originText } from '../views/forecasts-view.ts';
import { neighboursFile } from '../../policy/colocation/neighbours-file.ts';
import { targetOf, writeWhole } from '../simulation/targets.ts';
import { neighboursPage } from '../views/neighbours-page.ts';
import { neighboursText } from '../views/neighbours-view.ts';
import { costTable, instancesTable, plansTable, poolsTable } from '../views/inventory-tables.ts';
import type {
  CostOptions,
  InstancesOptions,
  NeighboursOptions,
  PlansOptions,
  PoolsOptions,
} from '../flags/inventory-flags.ts';

export const cost: Action<CostOptions> = async ({ output, json: asJson, client }, _args, { by, idle }) => {
  const engine = await client();
  const report = await wholeReport(engine, { by, idle });
  if (asJson) json(output, report);
  else output.line(costTable(output, by === 'job' ? await named(engine, report) : report));
};

/** All pages as one report. A row that grows meanwhile can be on two pages; its first place counts. */
async function wholeReport(engine: Client, of: CostOptions): Promise<CostReport> {
  const asked = { ...of, limit: MAX_COST_ROWS };
  const first = await engine.get<CostReport>(routes.costs, asked);
  const rows = new Map(first.rows.map((row) => [row.key, row]));
  for (let cursor = first.next; cursor !== null;) {
    const page = await engine.get<CostReport>(routes.costs, { ...asked, cursor });
    for (const row of page.rows) if (!rows.has(row.key)) rows.set(row.key, row);
    cursor = page.next;
  }
  return { ...first, rows: [...rows.values()], next: null };
}

/** The report with names of jobs: the ledger has ids only. Newest first, page by page, until all have one. */
async function named(engine: Client, report: CostReport): Promise<CostReport> {
  const unnamed = new Set(report.rows.map((row) => row.key).filter((key) => key.startsWith('j-')));
  const names = new Map<string, string>();
  for (let cursor: string | undefined; unnamed.size > 0;) {
    const page = await engine.get<JobList>(routes.jobs, { limit: 1000, cursor });
    for (const { id, name } of page.items) if (unnamed.delete(id)) names.set(id, name);
    if (page.next === null) break;
    cursor = page.next;
  }
  const keyOf = (id: string): string => (names.has(id) ? `${id}  ${names.get(id)}` : id);
  return { ...report, rows: report.rows.map((row) => ({ ...row, key: keyOf(row.key) })) };
}

export const pools: Action<PoolsOptions> = async ({ output, json: asJson, client }, _args, options) => {
  const { option, zone, type, limit } = options;
  const engine = await client();
  if (options.forecast === true) {
    if (option !== undefined && option !== 'spot') {
      throw new EbbError('usage', {
        what: '--forecast is of spot pools: no other is taken away',
        got: `--option ${option}`,
        next: 'leave out --option',
      });
    }
    await forecasts({ output, asJson, engine }, { zone, type, limit });
    return;
  }
  if (options.drift !== undefined) {
    await drift({ output, asJson, engine }, { ...options, risk: options.drift });
    return;
  }
  const found = await all<PoolView>(engine, routes.pools, { option, zone, type });
  const priced = (p: PoolView): number => p.priceUsdPerHour ?? Infinity;
  const shown = found.sort((a, b) => priced(a) - priced(b) || a.id.localeCompare(b.id)).slice(0, limit);
  if (asJson) {
    json(output, { items: shown, total: found.length });
    return;
  }
  output.line(poolsTable(output, shown));
  if (shown.length < found.length) output.note(`the cheapest ${shown.length} of ${found.length}; more with --limit`);
};

interface Asking {
  readonly output: Output;
  readonly asJson: boolean;
  readonly engine: Client;
}

/** Drift of all pools: filters choose pools for sale, drift concerns pools bought from. */
async function drift(
  { output, asJson, engine }: Asking,
  { option, zone, type, limit, risk }: PoolsOptions & { readonly risk: DriftRisk },
): Promise<void> {
  const filter = option ?? zone ?? type;
  if (filter !== undefined) {
    throw new EbbError('usage', {
      what: '--drift is of every pool in which spot instances were bought',
      got: filter,
      next: 'leave out --option, --zone and --type',
    });
  }
  const found = await engine.get<DriftView>(routes.drift, { limit: Math.max(1, Math.min(limit, 1000)), risk });
  if (asJson) json(output, found);
  else output.line(driftText(output, found, { risk, whose: 'forecasts of this engine', limit, rest: found.morePools }));
}

async function forecasts(
  { output, asJson, engine }: Asking,
  { limit, ...of }: { readonly zone: string | undefined; readonly type: string | undefined; readonly limit: number },
): Promise<void> {
  const list = await engine.get<ForecastList>(routes.forecasts, { ...of, limit: Math.max(1, Math.min(limit, 1000)) });
  if (asJson) {
    json(output, list);
    return;
  }
  output.line(forecastsTable(output, list.items));
  output.note(originText(list.origin));
  if (list.next !== null) output.note(`the first ${list.items.length} pools; more with --limit`);
}

export const instances: Action<InstancesOptions> = async ({ output, json: asJson, client }, _args, options) => {
  const engine = await client();
  const live = options.all === true ? undefined : true;
  const list = await engine.get<InstanceList>(routes.instances, { live, limit: options.limit });
  if (asJson) {
    json(output, list);
    return;
  }
  output.line(instancesTable(output, list.items));
  if (list.next !== null) output.note(`the newest ${list.items.length}; more with --limit`);
};

export const plans: Action<PlansOptions> = async ({ output, json: asJson, client }, _args, { limit }) => {
  const engine = await client();
  const list = await engine.get<PlanList>(routes.plans, { limit });
  if (asJson) json(output, list);
  else output.line(plansTable(output, list.items));
};

/** Writes what was learned, for another engine to begin with. */
export const exportNeighbours: Action<object> = async ({ output, json: asJson, client }, [path = '']) => {
  const file = targetOf('FILE', resolve(path), true);
  const engine = await client();
  const { rows = {}, groups } = await engine.get<NeighboursView>(routes.neighbours, { rows: true });
  writeWhole(file, neighboursFile(rows), 'FILE');
  const count = Object.keys(rows).length;
  if (asJson) json(output, { file, rows: count, groups: groups.length });
  else
    output.line(
      `written to ${file}: ${groups.length} groups, ${count} rows; \`ebb up --neighbours FILE\` begins with it`,
    );
};

export const neighbours: Action<NeighboursOptions> = async ({ output, json: asJson, client }, _args, { html }) => {
  const engine = await client();
  const found = await engine.get<NeighboursView>(routes.neighbours);
  if (html !== undefined) {
    const file = targetOf('--html', resolve(html), true);
    writeWhole(file, neighboursPage(found), '--html');
    if (!asJson) output.line(`written to ${file}`);
  }
  if (asJson) json(output, found);
  else if (html === undefined) output.line(neighboursText(output, found));
};
