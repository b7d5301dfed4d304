import { createHash } from 'node:crypto';
import { Script } from 'node:vm';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { clientCode } from '../../../lib/report/client-code.ts';
import { reportHtml, type ReportInput } from '../../../lib/report/html.ts';
import { escaped, html, scriptJson } from '../../../lib/report/markup.ts';
import { fabricated, outcome } from './outcomes.ts';

const HOSTILE = '</script><img src=x onerror="alert(1)"> & \'';
const input = (more: Partial<ReportInput> = {}): ReportInput => ({
  title: `Title ${HOSTILE}`,
  workload: `workload ${HOSTILE}`,
  market: 'm',
  command: `ebb simulate ${HOSTILE}`,
  versions: { ebbtide: '0.1.0' },
  notes: [`note ${HOSTILE}`],
  assumptions: [`assumed ${HOSTILE}`],
  runs: ['on-demand', 'ebbtide'].map((preset) =>
    fabricated({ preset, jobs: 30, price: preset === 'ebbtide' ? 0.3 : 1 }),
  ),
  prices: [],
  ...more,
});

/** Elements as a browser ends them: at the first end tag of their kind. */
const contents = (page: string, tag: 'script' | 'style'): { readonly attributes: string; readonly text: string }[] =>
  [...page.matchAll(new RegExp(`<${tag}([^>]*)>([\\s\\S]*?)</${tag}>`, 'g'))].map(([, attributes = '', text = '']) => ({
    attributes,
    text,
  }));

const unescaped = (text: string): string =>
  text.replace(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code)));

const withoutScripts = (text: string): string => text.replace(/<script[^>]*>[\s\S]*?<\/script>/g, '');

let page: string;
beforeAll(async () => {
  page = await reportHtml(input());
});

describe('the page', () => {
  it('lets only its own scripts and style run, and nothing be fetched', () => {
    const policy = unescaped(/Content-Security-Policy"\s+content="([^"]*)"/.exec(page)?.[1] ?? '');
    const code = contents(page, 'script').filter((s) => s.attributes === '');
    const hash = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
    expect(code).toHaveLength(2);
    expect(policy.split('; ')).toEqual([
      "default-src 'none'",
      `script-src ${code.map((c) => hash(c.text)).join(' ')}`,
      `style-src ${hash(contents(page, 'style')[0]?.text ?? '')}`,
      "base-uri 'none'",
      "form-action 'none'",
    ]);
    const tags = withoutScripts(page).match(/<[^>]+>/g) ?? [];
    expect(tags.length).toBeGreaterThan(200);
    expect(tags.filter((tag) => /^<(?:link|iframe|object|img|base|form)\b|\s(?:src|style|on\w+)=/.test(tag))).toEqual(
      [],
    );
  });

  it('escapes what others wrote, in text and in data', () => {
    const outside = withoutScripts(page);
    expect(outside).not.toContain('<img');
    expect(unescaped(outside)).toContain(`note ${HOSTILE}`);
    const data = contents(page, 'script').find((s) => s.attributes.includes('id="data"'))?.text ?? '';
    const { presets } = JSON.parse(data) as { presets: string[] };
    expect(presets).toEqual(['on-demand', 'ebbtide']);
  });

  it('has the figures without its script, bad news first', () => {
    const text = unescaped(page.replace(/<script[^>]*>[\s\S]*?<\/script>|<[^>]+>/g, ' ')).replace(/\s+/g, ' ');
    expect(text.indexOf('refused at submission')).toBeLessThan(text.indexOf('Cheapest of those'));
    expect(text).toMatch(/ebbtide \$[\d.]+ \d+ % 0\.\d+/);
    expect(text).toContain('One run of each preset: there are no intervals');
  });

  it('is the same for the same runs', async () => {
    expect(await reportHtml(input())).toBe(page);
  });

  it('can be of a run in which nothing happened', async () => {
    const empty = await reportHtml(input({ runs: [outcome()], notes: [] }));
    expect(empty).not.toContain('id="lateness-chart"');
    expect(withoutScripts(empty)).not.toContain('NaN');
  });

  it('says when jobs were left out', async () => {
    const runs = [1, 2].map((seed) => fabricated({ preset: 'p', jobs: 20, seed }));
    expect(await reportHtml(input({ runs, rows: 20 }))).toContain('The jobs of 1 of 2 runs were left out');
  });
});

describe('its script', () => {
  it('is one block that parses, without modules', () => {
    expect(() => new Script(clientCode())).not.toThrow();
    expect(clientCode()).not.toMatch(/^\s*(?:import|export)\b/m);
    expect(clientCode().match(/^class Page\b/gm)).toHaveLength(1);
  });

  it('never makes HTML of text', () => {
    expect(clientCode()).not.toMatch(/innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function/);
  });
});

describe('markup', () => {
  it('escapes values, not markup, in text and in attributes', () => {
    const inner = html`<b>${'<i>'}</b>`;
    expect(html`<p title="${'"\''}">${inner}${[inner, null]}${3}${null}</p>`.html).toBe(
      '<p title="&#34;&#39;"><b>&#60;i&#62;</b><b>&#60;i&#62;</b>3</p>',
    );
    expect(escaped('a&b')).toBe('a&#38;b');
    expect(JSON.parse(scriptJson({ a: HOSTILE }))).toEqual({ a: HOSTILE });
    expect(scriptJson('<!--</script>')).not.toContain('<');
  });
});
