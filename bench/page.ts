/** Figures of a benchmark as one self-contained page: tables, and plots drawn by ECharts as SVG. It runs no script. */
import type { EChartsOption } from 'echarts';
import { html, Markup, rawElement } from '../lib/report/markup.ts';
import { STYLE } from '../lib/report/style.ts';

/**
 * Long names of rows wrap, so that their figures are in sight. Plots are drawn on white; dark pages invert them and
 * keep their hues.
 */
const OWN_STYLE = `
tbody th { white-space: normal; min-width: 12rem; }
.charts svg { background: #fff; max-width: 100%; height: auto; }
@media (prefers-color-scheme: dark) { .charts svg { filter: invert(.91) hue-rotate(180deg); } }
`;
const PLOT = { width: 560, height: 400 } as const;
/** Colours of Okabe and Ito, distinct also without colour vision. */
const COLOURS = ['#999999', '#000000', '#e69f00', '#56b4e9', '#cc79a7', '#0072b2', '#d55e00', '#009e73'];

export const pageOf = (title: string, body: Markup): string =>
  html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>${title}</title>
        ${rawElement('style', {}, STYLE + OWN_STYLE)}
      </head>
      <body>
        <header><h1>${title}</h1></header>
        <main>${body}</main>
      </body>
    </html> `.html;

const head = (names: readonly string[]): Markup =>
  html`<thead>
    <tr>
      ${names.map((name, i) => html`<th scope="col" ${new Markup(i === 0 ? '' : 'class="right"')}>${name}</th>`)}
    </tr>
  </thead>`;

/** Places for line breaks: between a value and its interval, and between accuracy and F1. */
const BREAK = / (?=\[[^\]]*\]$)|(?<= pt), /;
function stacked(text: string): Markup {
  const [first = '', second] = text.split(BREAK);
  return html`${first}${second === undefined ? null : html`<span class="interval">${second}</span>`}`;
}

const line = ([first = '', ...rest]: readonly string[]): Markup =>
  html`<tr>
    <th scope="row">${first}</th>
    ${rest.map((text) => html`<td class="right">${stacked(text)}</td>`)}
  </tr>`;

export const table = (names: readonly string[], lines: readonly (readonly string[])[]): Markup =>
  html`<div class="scroll">
    <table>
      ${head(names)}
      <tbody>
        ${lines.map(line)}
      </tbody>
    </table>
  </div>`;

/** Draws plots, 560 x 400 pixels unless told otherwise. */
export async function drawing(): Promise<(option: EChartsOption, size?: Partial<typeof PLOT>) => Markup> {
  const echarts = await import('echarts');
  return (option, size = {}) => {
    const chart = echarts.init(null, null, { renderer: 'svg', ssr: true, ...PLOT, ...size });
    try {
      chart.setOption({ animation: false, color: COLOURS, ...option });
      return new Markup(chart.renderToSVGString());
    } finally {
      chart.dispose();
    }
  };
}
