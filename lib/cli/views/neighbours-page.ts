/** Page of learned groups and slow-downs: a table and two heat maps, self-contained, without scripts. */
import type { NeighboursView } from '../../api/schemas.ts';
import { html, Markup, rawElement } from '../../report/markup.ts';
import { STYLE } from '../../report/style.ts';
import { percent } from '../format.ts';

type Group = NeighboursView['groups'][number];
type Pair = NeighboursView['pairs'][number];

const OWN_STYLE = `
.map td { text-align: center; min-width: 4.5rem; }
.map td.low { color: #1f2430; }
.map td.high { color: #ffffff; }
.map small { display: block; opacity: .85; }
tbody th { white-space: nowrap; }
td.programs { white-space: normal; min-width: 18rem; overflow-wrap: anywhere; }
`;
/** White to a blue of Okabe and Ito: light to dark, so that it reads without colour vision and in print. */
const LIGHT = [244, 247, 251] as const;
const DARK = [0, 82, 136] as const;
/** From here on white text is easier to read. */
const WHITE_TEXT = 0.55;

export const neighboursPage = ({ groups, pairs, asOf }: NeighboursView): string =>
  html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>Neighbours</title>
        ${rawElement('style', {}, STYLE + OWN_STYLE)}
      </head>
      <body>
        <header><h1>Neighbours</h1></header>
        <main>
          <p class="note">Groups of programs that use machines alike, and how they share them, as of ${asOf}.</p>
          ${
            groups.length === 0
              ? html`<p>Nothing has been learned yet.</p>`
              : html`${aboutGroups(groups)}
                ${section(
                  'Runs longer beside',
                  'How much longer a program of the row runs beside one of the column that takes all of a device, with a 95 % interval. Darker: longer; from 1x to 2x and more.',
                  heatMap(groups, pairs, slowdownCell),
                )}
                ${section(
                  'Next beside it',
                  'How likely a program of the column is to be the next beside one of the row, by how well both used machines together. Presets mary, hugo and hugo-star draw by it.',
                  heatMap(groups, pairs, ({ chance }) => cell(chance, percent(chance))),
                )}`
          }
        </main>
      </body>
    </html> `.html;

const section = (title: string, note: string, body: Markup): Markup =>
  html`<section>
    <h2>${title}</h2>
    <p class="note">${note}</p>
    ${body}
  </section>`;

function aboutGroups(groups: readonly Group[]): Markup {
  const titles = ['group', 'vCPUs', 'disk', 'network', 'waits', 'memory', 'attempts', 'programs'];
  const row = ({ id, profile, attempts, templates, templateCount }: Group): Markup => {
    const parts = [profile.cpu, profile.disk, profile.network, profile.waiting, profile.memory];
    const more = templateCount - templates.length;
    return html`<tr>
      <th scope="row">${id}</th>
      ${parts.map((part) => html`<td class="right">${percent(part)}</td>`)}
      <td class="right">${attempts}</td>
      <td class="programs">${templates.join(', ')}${more > 0 ? ` and ${more} more` : ''}</td>
    </tr>`;
  };
  return section(
    'Groups',
    'What their programs use: of what they ask for, and of the disk and network.',
    table(titles, groups.map(row)),
  );
}

function heatMap(groups: readonly Group[], pairs: readonly Pair[], shown: (pair: Pair) => Markup): Markup {
  const of = new Map(pairs.map((pair) => [`${pair.running} ${pair.next}`, pair]));
  const row = ({ id }: Group): Markup =>
    html`<tr>
      <th scope="row">${id}</th>
      ${groups.map(({ id: next }) => {
        const pair = of.get(`${id} ${next}`);
        return pair === undefined ? html`<td>-</td>` : shown(pair);
      })}
    </tr>`;
  return table(['runs', ...groups.map(({ id }) => id)], groups.map(row), 'map');
}

const table = (titles: readonly string[], rows: readonly Markup[], kind = ''): Markup =>
  html`<div class="scroll">
    <table class="${kind}">
      <thead>
        <tr>
          ${titles.map((title) => html`<th scope="col">${title}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${rows}
      </tbody>
    </table>
  </div>`;

function slowdownCell({ slowdown }: Pair): Markup {
  if (slowdown === null) return html`<td>-</td>`;
  const { factor, low, high } = slowdown;
  return cell(factor - 1, `${factor.toFixed(2)}x`, `${low.toFixed(2)} to ${high.toFixed(2)}`);
}

/** `part`: 0 light, 1 dark. */
function cell(part: number, text: string, note?: string): Markup {
  const at = Math.max(0, Math.min(1, part));
  const colour = LIGHT.map((from, i) => Math.round(from + at * ((DARK[i] ?? 0) - from))).join(', ');
  const attributes = new Markup(`class="${at < WHITE_TEXT ? 'low' : 'high'}" style="background: rgb(${colour})"`);
  return html`<td ${attributes}>${text}${note === undefined ? null : html`<small>${note}</small>`}</td>`;
}
