import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { reportHtml } from '../../../lib/report/html.ts';
import { fabricated } from '../../unit/report/outcomes.ts';
import { Browser, CHROMIUM } from './browser.ts';

const JOBS = 20_000;
const runs = ['on-demand', 'ebbtide'].map((preset) =>
  fabricated({ preset, jobs: JOBS, price: preset === 'ebbtide' ? 0.3 : 1, late: 0.03 }),
);
const ebbtide = runs[1];

if (CHROMIUM === undefined) console.warn('report page: skipped, there is no Chromium here (CHROME_PATH names one)');

(CHROMIUM === undefined ? describe.skip : describe)('the page of a report in a browser', () => {
  const dir = mkdtempSync(join(tmpdir(), 'ebb-report-'));
  let browser: Browser;

  beforeAll(async () => {
    const page = await reportHtml({
      title: 'Two presets',
      workload: 'made up',
      market: 'made up',
      command: null,
      versions: { ebbtide: '0.1.0' },
      notes: [],
      assumptions: [],
      runs,
      prices: (ebbtide?.pools ?? []).flatMap(({ pool, option }) =>
        option !== 'spot' || ebbtide === undefined
          ? []
          : {
              pool,
              fromMs: ebbtide.fromMs,
              toMs: ebbtide.endMs,
              onDemandUsdPerHour: 0.4,
              atMs: [ebbtide.fromMs, ebbtide.fromMs + 3_600_000],
              usdPerHour: [0.1, 0.2],
            },
      ),
    });
    writeFileSync(join(dir, 'report.html'), page);
    browser = await Browser.start();
    await browser.size(1280, 900);
    await browser.send('Page.navigate', { url: pathToFileURL(join(dir, 'report.html')).href });
    await shown(`${JOBS.toLocaleString('en-US')} of`);
  }, 60_000);

  afterAll(async () => {
    await browser.close();
    rmSync(dir, { recursive: true, force: true });
  });

  const found = `document.getElementById('job-found').textContent`;
  /** Waits until the count of the jobs' table starts so. */
  const shown = async (start: string): Promise<void> => {
    const asked = `new Promise((done) => { const look = () => (document.getElementById('job-found')?.textContent ?? '')
      .startsWith(${JSON.stringify(start)}) ? done(true) : setTimeout(look, 20); look(); })`;
    expect(await browser.value(asked)).toBe(true);
  };
  const change = async (id: string, value: string, event: string): Promise<unknown> =>
    browser.value(
      `{ const e = document.getElementById('${id}'); e.value = '${value}'; e.dispatchEvent(new Event('${event}')); ${found} }`,
    );
  const rowsDrawn = `document.querySelectorAll('#job-rows .row').length`;
  const place = `document.querySelector('#job-rows .current')?.getAttribute('aria-rowindex')`;

  it('draws every chart, and complains of nothing', async () => {
    const canvases = await browser.value(
      `[...document.querySelectorAll('.chart canvas')].map((c) => c.closest('.chart').id)`,
    );
    expect(canvases).toEqual([
      'cost-chart',
      'deadline-chart',
      'best-effort-chart',
      'lateness-chart',
      'instances-chart',
      'prices-chart',
    ]);
    expect(await browser.value(`document.getElementById('failure').hidden`)).toBe(true);
    expect(browser.complaints).toEqual([]);
  });

  it('has elements only for the rows in view', async () => {
    expect(await browser.value(rowsDrawn)).toBeGreaterThan(8);
    expect(await browser.value(rowsDrawn)).toBeLessThan(40);
  });

  it('searches and filters', async () => {
    expect(await change('job-search', 'JOB-1999', 'input')).toBe('11 of 20,000 jobs');
    expect(await change('job-search', '', 'input')).toBe('20,000 of 20,000 jobs');
    const missed = runs[0]?.totals.missed ?? 0;
    expect(await change('job-filter', 'missed', 'change')).toBe(`${missed} of 20,000 jobs`);
    await change('job-filter', 'all', 'change');
  });

  it('shows names as text', async () => {
    await change('job-search', 'template-7 ', 'input');
    const name = await browser.value(`document.querySelector('#job-rows .cell.name').textContent`);
    expect(name).toBe('template-7 <b>&"quoted"</b>');
    expect(await browser.value(`document.querySelectorAll('#job-rows b').length`)).toBe(0);
    await change('job-search', '', 'input');
  });

  it('sorts by a column, and the other way round', async () => {
    const sortByCost = `document.querySelector('#job-head .costUsd button').click();
      [document.querySelector('#job-head .costUsd').getAttribute('aria-sort'), document.querySelector('#job-rows .cell.key').textContent]`;
    const costs = (runs[0]?.jobs.key ?? []).map((key, i): [number, string] => [
      Math.fround(runs[0]?.jobs.workUsd[i] ?? 0) + Math.fround(runs[0]?.jobs.wastedUsd[i] ?? 0),
      key,
    ]);
    const highest = costs.reduce((a, b) => (b[0] > a[0] ? b : a))[1];
    const lowest = costs.reduce((a, b) => (b[0] < a[0] ? b : a))[1];
    expect(await browser.value(sortByCost)).toEqual(['descending', highest]);
    expect(await browser.value(sortByCost)).toEqual(['ascending', lowest]);
  });

  it('is read by the keyboard from the first row to the last', async () => {
    await browser.value(`document.getElementById('job-pane').focus()`);
    await browser.key('Home');
    expect(await browser.value(place)).toBe('2');
    await browser.key('ArrowDown');
    expect(await browser.value(place)).toBe('3');
    await browser.key('End');
    expect(await browser.value(place)).toBe(String(JOBS + 1));
    const inView = `(() => { const row = document.querySelector('#job-rows .current').getBoundingClientRect();
      const pane = document.getElementById('job-pane').getBoundingClientRect(); return row.bottom <= pane.bottom + 1; })()`;
    expect(await browser.value(inView)).toBe(true);
    expect(await browser.value(`document.getElementById('job-detail').textContent`)).toContain('Submitted');
  });

  it('shows another run', async () => {
    await change('run', '1', 'change');
    await change('job-filter', 'missed', 'change');
    await shown(`${ebbtide?.totals.missed ?? 0} of`);
    await change('job-filter', 'all', 'change');
  });

  it('is light or dark by its switch', async () => {
    const background = `getComputedStyle(document.body).backgroundColor`;
    await change('theme', 'dark', 'change');
    expect(await browser.value(background)).toBe('rgb(20, 23, 31)');
    await change('theme', 'light', 'change');
    expect(await browser.value(background)).toBe('rgb(255, 255, 255)');
  });

  it('fits a narrow screen', async () => {
    await browser.size(360, 740);
    expect(await browser.value(`document.documentElement.scrollWidth`)).toBe(360);
    expect(browser.complaints).toEqual([]);
  });
});
