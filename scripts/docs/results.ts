/** docs/results.md from bench/results/*.json, by name of the file. `--check` fails when the page is out of date. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { z } from 'zod';
import {
  defaultRecord,
  type FigureGroup,
  figureGroup,
  type FigureRecord,
  type GroundRecord,
} from '../../bench/record.ts';
import { stratusRecord, type SweepRow } from '../../bench/stratus/record.ts';
import { comparison, type Comparison } from '../../bench/cluster/record.ts';
import { publish } from './page.ts';

/** The table of bench/default.ts, which is no group of figures. */
const DEFAULT_FILE = 'default.json';
/** The tables of bench/stratus.ts. */
const STRATUS_FILE = 'stratus.json';
const folder = new URL('../../bench/results/', import.meta.url);

function groupIn(file: string): FigureGroup {
  const checked = figureGroup.safeParse(JSON.parse(readFileSync(new URL(file, folder), 'utf8')));
  if (!checked.success) throw new Error(`bench/results/${file}: ${z.prettifyError(checked.error)}`);
  return checked.data;
}

const cell = (text: string): string => text.replaceAll('|', '\\|');
const withUnit = (text: string, unit: string | undefined): string => (unit === undefined ? text : `${text} ${unit}`);
const verdictOf = ({ met }: FigureRecord): string => (met === undefined ? '' : met ? '<br>reached' : '<br>**missed**');

/** Row of four columns: more do not fit the width of a page. */
function row(record: FigureRecord, command: number): string {
  const { what, reach, seen, unit, when, commit, note } = record;
  const figure = note === undefined ? what : `${what}<br>_${note}_`;
  const target = reach === null ? '-' : withUnit(reach, unit);
  const cells = [figure, target, `${withUnit(seen, unit)}${verdictOf(record)}`, `${when}, ${commit}, (${command})`];
  return `| ${cells.map(cell).join(' | ')} |`;
}

function section({ title, about, figures }: FigureGroup): string {
  const commands = [...new Set(figures.map(({ command }) => command))];
  return `## ${title}

${about}

| figure | to reach | seen | measured |
| --- | --- | --- | --- |
${figures.map((figure) => row(figure, commands.indexOf(figure.command) + 1)).join('\n')}

${commands.map((command, i) => `${i + 1}. \`${command}\``).join('\n')}
`;
}

type Estimate = GroundRecord['presets'][number]['toBound'];
const ratioText = (e: Estimate): string => e?.value.toFixed(3) ?? '-';
const intervalText = (e: Estimate): string =>
  e === null || e.low === null || e.high === null
    ? ratioText(e)
    : `${ratioText(e)} [${e.low.toFixed(3)}, ${e.high.toFixed(3)}]`;
const tableOf = (rows: readonly (readonly string[])[]): string =>
  rows.map((cells) => `| ${cells.map(cell).join(' | ')} |`).join('\n');

const DEFAULT_TITLE = 'The default on every ground';

function grounds(): readonly GroundRecord[] {
  const file = new URL(DEFAULT_FILE, folder);
  return existsSync(file) ? defaultRecord.parse(JSON.parse(readFileSync(file, 'utf8'))).grounds : [];
}

const ofDefault = (g: GroundRecord): GroundRecord['presets'][number] | undefined =>
  g.presets.find((p) => p.preset === 'ebbtide');
/** Not cheaper than the best rival, as far as the cases tell. */
const isLost = ({ toRival }: GroundRecord): boolean =>
  toRival !== null && (toRival.ratio.low ?? toRival.ratio.value) > 1;

/** Winners and ratios of the default, then every preset. */
function defaultSection(all: readonly GroundRecord[]): string {
  const presets = [...new Set(all.flatMap((g) => g.presets.map((p) => p.preset)))];
  const winners = all.map((g) => [
    `${g.ground}<br>_${g.about}_`,
    g.winner ?? 'none',
    g.toRival === null ? '-' : `${intervalText(g.toRival.ratio)} of ${g.toRival.rival}`,
    `${intervalText(ofDefault(g)?.toOnDemand ?? null)}; ${ratioText(ofDefault(g)?.toBound ?? null)}`,
    `${g.cases} cases, ${g.when}, ${g.commit}`,
  ]);
  const costs = all.map((g) => [
    g.ground,
    ...presets.map((name) => {
      const p = g.presets.find(({ preset }) => preset === name);
      if (p === undefined) return '-';
      const late = p.missed > 0 ? `, ${p.missed} of ${p.deadlines} late` : '';
      return `${ratioText(p.toOnDemand)}${late}${p.undone > 0 ? `, ${p.undone} not done` : ''}`;
    }),
  ]);
  const parts = all.flatMap((g) =>
    g.groups.map(({ group, cases, toOnDemand, most }) => [
      `${g.ground}, ${group}`,
      String(cases),
      toOnDemand.toFixed(3),
      most.toFixed(2),
    ]),
  );
  return `## ${DEFAULT_TITLE}

Every preset on the same cases, data that nothing was tuned on. **On-demand** is the cheapest on-demand way that knows nothing of the future (an instance for each task,
or packed), the **lower bound** what no way of doing the work in time undercuts before refunds ([simulator](simulation.md)). The winner is the cheapest preset that misses at most 1 % of the
deadlines; the rival is the cheapest such preset besides \`ebbtide\`. By the hour the bound is far below what can be done: it takes paid hours for used to their end.

**Still lost.** Price histories hold no losses of capacity, so that \`spot-fleet\`, which takes spot whatever the deadline, pays for no safety on them; on series with losses it
costs 1.5 to 1.8 times as much. \`ebbtide\` expects 0.03 interruptions an instance-hour
until its instances have shown otherwise: on prices of 2021 it pays 8 to 18 % for a safety that nobody needed there.

${tableOf([['ground', 'winner', '`ebbtide` over the best rival', '`ebbtide` over on-demand; over the lower bound', 'measured'], ['---', '---', '---', '---', '---'], ...winners])}

Cost over on-demand, and deadlines missed:

${tableOf([['ground', ...presets], ['---', ...presets.map(() => '---')], ...costs])}

\`ebbtide\` by part of a ground:

${tableOf([['part', 'cases', 'over on-demand', 'at most'], ['---', '---', '---', '---'], ...parts])}

1. \`npm run bench:default\`
`;
}

const STRATUS_TITLE = 'Stratus and its rivals';

/** The largest cost of wrong running times, with and without clearing. */
function sweepText(sweep: readonly SweepRow[]): string {
  const worst = [...Map.groupBy(sweep, (r) => r.preset)].flatMap(([preset, rows]) => {
    const [most] = rows.toSorted((a, b) => (b.toTrue?.value ?? 0) - (a.toTrue?.value ?? 0));
    return most === undefined ? [] : [`\`${preset}\` costs at most ${intervalText(most.toTrue)} (h ${most.h})`];
  });
  return worst.length === 0
    ? ''
    : `
Running times that are off by a factor between h and 1, ${new Set(sweep.map((r) => r.h)).size} values of h from 0.01 to 100, over \`stratus\` with true ones: ${worst.join(', ')}
(\`npm run bench:stratus -- --sensitivity\`).
`;
}

/** The presets of the paper on each workload and market. */
function stratusSection(): string {
  const file = new URL(STRATUS_FILE, folder);
  if (!existsSync(file)) return '';
  const { tables, command, gapS } = stratusRecord.parse(JSON.parse(readFileSync(file, 'utf8')));
  const parts = tables.map((t) => {
    const rows = t.presets.map((p) => [
      p.preset,
      intervalText(p.toStratus),
      p.usdPerDay.toFixed(0),
      `${(100 * p.utilisation.value).toFixed(0)} %`,
      `${p.latencyP50.toFixed(2)}, ${p.latencyP95.toFixed(2)}`,
      `${p.moves}, ${p.interruptions}`,
      String(p.undone),
    ]);
    const head = [
      'preset',
      'cost over `stratus`',
      'USD/day',
      'used',
      'latency: p50, p95',
      'moves, interruptions',
      'undone',
    ];
    return `**${t.workload}, ${t.market}**: ${t.about}; ${t.windows} windows, ${t.jobs} jobs, ${t.tasks} tasks; measured ${t.when}, ${t.commit}

${tableOf([head, head.map(() => '---'), ...rows])}
${sweepText(t.sweep ?? [])}`;
  });
  return `## ${STRATUS_TITLE}

The setting of the Stratus paper (section 3.3) on real traces; decisions at least ${gapS} s apart. Used: the requested part of what was rented, of the resource that
constrains the workload. Latency: time from submission to completion over the running time of the longest task. \`npm run bench:stratus\` draws a page with charts as well.

${parts.join('\n')}
1. \`${command}\`
`;
}

/** Comparisons of presets on clusters. */
const clusters = new URL('clusters/', folder);
const comparisons = readdirSync(clusters)
  .sort()
  .map((file) => comparison.parse(JSON.parse(readFileSync(new URL(file, clusters), 'utf8'))));

function comparisonSection({ title, about, command, when, commit, figures, tables }: Comparison): string {
  const targets = [
    ['figure', 'to reach', 'seen'],
    ['---', '---', '---'],
    ...figures.map((f) => [f.what, f.reach, `${f.seen}<br>${f.met ? 'reached' : '**missed**'}`]),
  ];
  const hasCharts = tables.some((t) => t.plot !== undefined);
  const parts = tables
    .filter((t) => t.isMain)
    .map((t) => `**${t.title}**: ${t.note}\n\n${tableOf([t.columns, t.columns.map(() => '---'), ...t.rows])}\n`);
  return `## ${title}

${about} Measured ${when}, ${commit}: \`${command}\`, which draws a page${hasCharts ? ' with charts' : ''} as well.

${figures.length === 0 ? '' : `${tableOf(targets)}\n\n`}${parts.join('\n')}`;
}

const anchorOf = (title: string): string => title.toLowerCase().replaceAll(' ', '-');
const groups = readdirSync(folder)
  .filter((file) => file.endsWith('.json') && file !== DEFAULT_FILE && file !== STRATUS_FILE)
  .sort()
  .map(groupIn);
const missed = groups.flatMap(({ title, figures }) =>
  figures
    .filter(({ met }) => met === false)
    .map(({ what, reach, seen, unit }) => {
      const cells = [`[${title}](#${anchorOf(title)})`, what, withUnit(reach ?? '-', unit), withUnit(seen, unit)];
      return `| ${cells.map(cell).join(' | ')} |`;
    }),
);

const missedOnClusters = comparisons.flatMap(({ title, figures }) =>
  figures
    .filter(({ met }) => !met)
    .map(
      ({ what, reach, seen }) => `| ${[`[${title}](#${anchorOf(title)})`, what, reach, seen].map(cell).join(' | ')} |`,
    ),
);

const judged = grounds();
const lost = judged.filter(isLost).map((g) => {
  const seen = `${intervalText(g.toRival?.ratio ?? null)} of ${g.toRival?.rival ?? ''}`;
  return `| ${[`[${DEFAULT_TITLE}](#${anchorOf(DEFAULT_TITLE)})`, g.ground, 'the cheapest', seen].map(cell).join(' | ')} |`;
});

await publish(
  new URL('../../docs/results.md', import.meta.url),
  `# Measured figures

<!-- Generated by \`npm run docs\` from bench/results. -->

One machine with 2 cores (x86_64, Linux), Node 24.21, HiGHS 1.15.3, SQLite 3.53; nothing else ran unless a note says so. Each command
prints its inputs, seed, versions and load. Intervals hold 95 %. Only the newest measurement of a figure is here; git has the
history. _Measured_ names the day, the commit that recorded it, and the command below the table.

## Missed targets

| group | figure | to reach | seen |
| --- | --- | --- | --- |
${[...lost, ...missed, ...missedOnClusters].join('\n')}

${judged.length === 0 ? '' : `${defaultSection(judged)}\n`}${stratusSection()}
${comparisons.map(comparisonSection).join('\n')}${groups.map(section).join('\n')}`,
);
