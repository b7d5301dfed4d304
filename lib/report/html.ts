import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { clientCode } from './client-code.ts';
import { FILTERS } from './client/job-rows.ts';
import { compare } from './comparison.ts';
import { detailsOf, EMBEDDED_ROWS } from './details.ts';
import { count } from './client/format.ts';
import { html, rawElement, scriptJson, type Markup } from './markup.ts';
import type { PriceSeries } from './prices.ts';
import {
  differencesTable,
  durationsTable,
  excesses,
  headline,
  presetsTable,
  runOptions,
  type Provenance,
} from './sections.ts';
import { servicesSection } from './services.ts';
import { STYLE } from './style.ts';
import type { RunOutcome } from './outcome.ts';
import type { Comparison } from './figures.ts';

export type { Provenance } from './sections.ts';

export interface ReportInput extends Provenance {
  readonly title: string;
  /** Presets x windows x seeds, in display order. */
  readonly runs: readonly RunOutcome[];
  /** Prices of used pools (`pricesOf`); none: no price charts. */
  readonly prices: readonly PriceSeries[];
  /** Absent: made from the runs. */
  readonly comparison?: Comparison;
  /** Most rows of jobs in the file; default EMBEDDED_ROWS. */
  readonly rows?: number;
}

/**
 * Page in one self-contained file. Its figures are tables that need no script, its charts are ECharts, and the jobs of
 * each run are compressed columns.
 *
 * Its policy forbids all requests, and all scripts and styles except its own, by their hashes. It has no time of
 * writing, so equal runs give equal files.
 *
 * Throws EbbError `usage` as `compare` does. O(rows log rows) time; the text is held in memory, about 25 bytes per job.
 */
export async function reportHtml(input: ReportInput): Promise<string> {
  const comparison = input.comparison ?? compare(input.runs);
  const { payload, blobs, leftOut } = await detailsOf(input.runs, comparison, {
    prices: input.prices,
    rows: input.rows ?? EMBEDDED_ROWS,
  });
  const scripts = [echartsCode(), clientCode()].map(scriptText);
  const policy = [
    "default-src 'none'",
    `script-src ${scripts.map(hashOf).join(' ')}`,
    `style-src ${hashOf(STYLE)}`,
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ');
  const page = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta http-equiv="Content-Security-Policy" content="${policy}" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="generator" content="ebbtide" />
        <title>${input.title}</title>
        ${rawElement('style', {}, STYLE)}
      </head>
      <body>
        ${body(input, comparison, leftOut)}
        ${rawElement('script', { type: 'application/json', id: 'data' }, scriptJson(payload))}
        ${blobs.map((blob, i) => rawElement('script', { type: 'text/plain', id: `blob-${i}` }, blob))}
        ${scripts.map((code) => rawElement('script', {}, code))}
      </body>
    </html> `;
  return page.html;
}

function body(input: ReportInput, comparison: Comparison, leftOut: number): Markup {
  const { runs } = input;
  return html`<header>
      <h1>${input.title}</h1>
      <label id="theme-part"
        >Theme
        <select id="theme">
          <option>auto</option>
          <option>light</option>
          <option>dark</option>
        </select></label
      >
    </header>
    <main>
      <noscript><p class="failure">Charts and jobs need JavaScript; the tables of figures do not.</p></noscript>
      <p class="failure" id="failure" role="alert" hidden></p>
      ${headline(comparison, runs, input)} ${presetsSection(comparison)} ${servicesSection(comparison)}
      ${comparison.differences.length === 0 ? null : differencesSection(comparison)}
      ${durationsSection(comparison, runs)} ${runSection(input, comparison, leftOut)}
      <footer class="note">
        Simulated by Ebbtide. Costs are what the provider would have billed at the market's prices.
      </footer>
    </main>`;
}

const presetsSection = (comparison: Comparison): Markup =>
  html`<section aria-labelledby="presets-title">
    <h2 id="presets-title">Presets</h2>
    ${presetsTable(comparison)} ${excesses(comparison)}
    <p class="note">${comparison.method.text}</p>
    <h3>Cost by kind</h3>
    <div
      class="chart"
      id="cost-chart"
      role="img"
      aria-label="Mean cost per run of each preset: work, wasted, speculative, moved and idle. The table above has the figures."
    ></div>
    <p class="note">
      Same work on demand: at the on-demand prices of the instances that it ran on, nothing wasted, speculative, moved
      or idle. It differs between presets that choose other instances. Speculative: attempts beside the one that
      succeeded first. Moved: time in which tasks go on elsewhere.
    </p>
  </section>`;

const differencesSection = (comparison: Comparison): Markup =>
  html`<section aria-labelledby="differences-title">
    <h2 id="differences-title">Differences between presets</h2>
    ${differencesTable(comparison)}
    <p class="note">Over the windows and seeds that both have. Negative: the first is lower.</p>
  </section>`;

const durationsSection = (comparison: Comparison, runs: readonly RunOutcome[]): Markup =>
  html`<section aria-labelledby="durations-title">
    <h2 id="durations-title">How long jobs took</h2>
    ${durationsTable(comparison)}
    <div class="charts">${distributions(runs)}</div>
  </section>`;

/** Details of the selected run, filled in by the script. */
const runSection = (input: ReportInput, comparison: Comparison, leftOut: number): Markup =>
  html`<section aria-labelledby="run-title">
    <h2 id="run-title">One run</h2>
    <div class="controls">
      <label
        >Run
        <select id="run">
          ${runOptions(input.runs, comparison)}
        </select></label
      >
    </div>
    <h3>Instances over time</h3>
    <p class="note" id="instances-note"></p>
    <div class="chart" id="instances-chart" role="img" aria-label="Live instances over time by purchase option"></div>
    <h3>Pools</h3>
    <p class="note" id="pools-note"></p>
    ${POOLS_TABLE}
    <div id="prices-part" hidden>
      <h3>Prices of the pools most was spent on</h3>
      <p class="note">USD per instance-hour; times are UTC.</p>
      <div
        class="chart"
        id="prices-chart"
        role="img"
        aria-label="Spot price over time of each pool, with its on-demand price"
      ></div>
    </div>
    <div id="refused-part" hidden>
      <h3>Refused jobs</h3>
      <ul id="refused"></ul>
    </div>
    ${jobsPart(input, leftOut)}
  </section>`;

const POOLS_TABLE = html`<div class="scroll" tabindex="0" role="region" aria-label="Pools: figures">
  <table>
    <thead>
      <tr>
        <th scope="col">Pool</th>
        <th scope="col">Bought as</th>
        <th scope="col" class="right">Launches</th>
        <th scope="col" class="right">Interruptions</th>
        <th scope="col" class="right">Refused requests</th>
        <th scope="col" class="right">Instance-hours</th>
        <th scope="col" class="right">Billed</th>
        <th scope="col" class="right">Of on-demand</th>
      </tr>
    </thead>
    <tbody id="pool-rows"></tbody>
  </table>
</div>`;

/** Search and table of the selected run's jobs. */
const jobsPart = (input: ReportInput, leftOut: number): Markup =>
  html`<h3 id="jobs-title">Jobs</h3>
    ${leftOut === 0 ? null : html`<p class="note">The jobs of ${count(leftOut)} of ${count(input.runs.length)} runs were left out: the file holds at most ${count(input.rows ?? EMBEDDED_ROWS)} rows.</p>`}
    <div class="controls">
      <label
        >Search <input type="search" id="job-search" placeholder="job, name or owner" aria-controls="job-pane"
      /></label>
      <label
        >Show
        <select id="job-filter" aria-controls="job-pane">
          ${FILTERS.map((f) => html`<option>${f}</option>`)}
        </select></label
      >
      <label
        >Class
        <select id="job-class" aria-controls="job-pane">
          <option>all</option>
          <option>deadline</option>
          <option>best-effort</option>
        </select></label
      >
      <span class="note" id="job-found" role="status"></span>
    </div>
    <div id="job-pane" role="grid" tabindex="0" aria-labelledby="jobs-title" aria-readonly="true">
      <div class="row head" role="row" id="job-head"></div>
      <div id="job-space" role="presentation"><div id="job-rows" role="rowgroup"></div></div>
    </div>
    <p class="note">
      Arrow keys move through the rows, a row's exact times stand below. Times are UTC; cost is work and wasted work
      without idle capacity.
    </p>
    <dl class="facts" id="job-detail" aria-live="polite"></dl>`;

/** Places for the distributions with data. */
function distributions(runs: readonly RunOutcome[]): readonly Markup[] {
  const has = (of: (r: RunOutcome) => number): boolean => runs.some((r) => of(r) > 0);
  const places: readonly (readonly [string, string, boolean])[] = [
    ['deadline-chart', 'Completion of jobs with deadlines', has((r) => r.totals.completionS.deadline?.length ?? 0)],
    [
      'best-effort-chart',
      'Completion of best-effort jobs',
      has((r) => r.totals.completionS['best-effort']?.length ?? 0),
    ],
    ['lateness-chart', 'Late by, of jobs done after their deadline', has((r) => r.totals.latenessS.length)],
  ];
  return places
    .filter(([, , used]) => used)
    .map(
      ([id, title]) =>
        html`<div>
          <h3>${title}</h3>
          <p class="note">Share of the jobs that took at most so long, all runs of a preset together.</p>
          <div
            class="chart"
            id="${id}"
            role="img"
            aria-label="${title}: distribution functions of the presets. The table above has percentiles."
          ></div>
        </div>`,
    );
}

/** ECharts with lines, bars, scatters, legends, zoom and tooltips, under its licence. */
function echartsCode(): string {
  const path = createRequire(import.meta.url).resolve('echarts/dist/echarts.common.min.js');
  return readFileSync(path, 'utf8');
}

/** Code between script tags: it must not end the element or open a comment over its end. */
function scriptText(code: string): string {
  if (/<\/script|<!--/i.test(code)) throw new SyntaxError('a script of the report cannot stand inside a page');
  return code;
}

const hashOf = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
