import { FONT, PALETTES, type Palette, type Theme } from './client/palette.ts';

const variables = (theme: Theme): string =>
  (
    [
      'background',
      'panel',
      'text',
      'faint',
      'line',
      'accent',
      'bad',
      'good',
    ] as const satisfies readonly (keyof Palette)[]
  )
    .map((name) => `--${name}: ${PALETTES[theme][name]};`)
    .join(' ');

/**
 * Style sheet of the page. Without the script the page follows the system's theme; with it the switch decides, by
 * `data-theme`. Print is light, and scrolling panes show the part in view.
 */
export const STYLE = `
:root { color-scheme: light; ${variables('light')} }
@media (prefers-color-scheme: dark) { :root:not([data-theme]) { color-scheme: dark; ${variables('dark')} } }
:root[data-theme='dark'] { color-scheme: dark; ${variables('dark')} }
* { box-sizing: border-box; }
body { margin: 0; background: var(--background); color: var(--text); font: 15px/1.5 ${FONT}; }
main, header { max-width: 1260px; margin: 0 auto; padding: 0 16px; }
header { display: flex; flex-wrap: wrap; gap: 8px 16px; justify-content: space-between; align-items: baseline; padding-top: 20px; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2.2rem 0 .5rem; }
h3 { font-size: 1rem; margin: 1.4rem 0 .3rem; }
p { margin: .4rem 0; max-width: 90ch; }
.note { color: var(--faint); font-size: .9rem; }
.bad { color: var(--bad); }
.good { color: var(--good); }
[hidden] { display: none !important; }
a { color: var(--accent); }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
.verdict { margin: .8rem 0; padding: .6rem 1rem .6rem 2rem; background: var(--panel); border-left: 4px solid var(--good); }
.verdict.bad { border-left-color: var(--bad); color: inherit; }
dl.facts { display: grid; grid-template-columns: max-content 1fr; gap: 2px 16px; margin: .6rem 0; font-size: .92rem; }
dl.facts dt { color: var(--faint); }
dl.facts dd { margin: 0; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; margin: .5rem 0; }
table { border-collapse: collapse; font-size: .88rem; font-variant-numeric: tabular-nums; }
th, td { padding: 5px 10px 5px 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); white-space: nowrap; }
thead th.right { white-space: normal; min-width: 4.5rem; max-width: 7.5rem; }
thead th { color: var(--faint); font-weight: 600; vertical-align: bottom; }
tbody th { font-weight: 600; }
.scroll th:first-child { position: sticky; left: 0; background: var(--background); }
.right { text-align: right; }
.interval { display: block; color: var(--faint); font-size: .85em; }
.chart { width: 100%; min-height: 40px; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 460px), 1fr)); gap: 8px 28px; }
.charts > * { min-width: 0; }
.tip { display: flex; gap: 16px; justify-content: space-between; font-variant-numeric: tabular-nums; }
.controls { display: flex; flex-wrap: wrap; gap: 8px 16px; align-items: center; margin: .5rem 0; }
label { display: inline-flex; gap: 6px; align-items: center; color: var(--faint); font-size: .9rem; min-width: 0; }
select, input { font: inherit; font-size: .9rem; color: var(--text); background: var(--panel); border: 1px solid var(--line); border-radius: 6px; padding: 4px 8px; min-width: 0; max-width: 100%; }
input[type='search'] { width: 16rem; }
#job-pane { height: 90px; max-height: 80vh; overflow: auto; border: 1px solid var(--line); border-radius: 6px; font-size: 12px; font-variant-numeric: tabular-nums; contain: strict; }
.row { display: grid; width: max-content; min-width: 100%; height: 30px; align-items: center;
  grid-template-columns: 96px 116px 72px 84px 80px 54px 126px 72px 68px 80px 88px 94px 98px; }
.row.head { position: sticky; top: 0; z-index: 1; height: 34px; background: var(--panel); border-bottom: 1px solid var(--line); }
.row.odd { background: color-mix(in srgb, var(--panel) 55%, transparent); }
.row.current { background: color-mix(in srgb, var(--accent) 24%, var(--background)); }
#job-rows .row { cursor: default; }
.cell { padding: 0 6px; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.tasks, .submittedMs, .waitedS, .tookS, .lateS, .costUsd, .onDemandUsd, .interruptions { text-align: right; }
.row.head button { all: unset; cursor: pointer; color: var(--faint); font-weight: 600; }
.row.head button:focus-visible { outline: 2px solid var(--accent); }
[aria-sort='ascending'] button::after { content: ' \\2191'; color: var(--accent); }
[aria-sort='descending'] button::after { content: ' \\2193'; color: var(--accent); }
#job-space { position: relative; min-width: max-content; }
#job-rows { position: absolute; top: 0; left: 0; min-width: 100%; }
.failure { background: var(--bad); color: var(--background); padding: 8px 12px; }
footer { margin: 3rem 0 2rem; }
@media (max-width: 560px) { body { font-size: 14px; } .verdict { padding-left: 1.6rem; } dl.facts { grid-template-columns: 1fr; } dl.facts dd { margin-bottom: 6px; } }
@media print {
  .controls, #theme-part { display: none; }
  .scroll { overflow: visible; }
  table { font-size: 8pt; }
  th, td { padding-right: 6px; white-space: normal; }
  #job-pane { height: auto; max-height: 300px; }
  h2, h3 { break-after: avoid; }
  .chart, tr { break-inside: avoid; }
  .charts { grid-template-columns: 1fr 1fr; }
  .chart { height: auto !important; }
  .chart > div:first-child, .chart canvas { position: static !important; width: 100% !important; height: auto !important; }
  .chart > div:not(:first-child) { display: none !important; }
}
`;
