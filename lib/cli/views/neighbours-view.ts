import type { NeighboursView } from '../../api/schemas.ts';
import { percent } from '../format.ts';
import type { Output } from '../output.ts';
import { table, text } from './text-table.ts';

type Group = NeighboursView['groups'][number];
type Pair = NeighboursView['pairs'][number];

const NOTHING =
  'nothing has been learned yet: tasks that share a machine and end teach it, where their use of it is measured';

/** Groups, and two maps of pairs: what is begun beside what, and what runs longer beside what. */
export function neighboursText(output: Pick<Output, 'colors' | 'columns'>, { groups, pairs }: NeighboursView): string {
  if (groups.length === 0) return output.colors.dim(NOTHING);
  const uses = (title: string, of: (g: Group) => number) => ({
    title,
    cell: (g: Group) => percent(of(g)),
    right: true,
    optional: 2,
  });
  const about = table(
    output,
    [
      { title: 'GROUP', cell: (g) => g.id },
      uses('CPU', (g) => g.profile.cpu),
      uses('DISK', (g) => g.profile.disk),
      uses('NETWORK', (g) => g.profile.network),
      uses('WAITS', (g) => g.profile.waiting),
      uses('MEMORY', (g) => g.profile.memory),
      { title: 'ATTEMPTS', cell: (g) => String(g.attempts), right: true, optional: 1 },
      { title: 'PROGRAMS', cell: named, wrap: 20 },
    ],
    groups,
    NOTHING,
  );
  const map = (cell: (pair: Pair) => string): string =>
    table(
      output,
      [
        { title: 'RUNS', cell: (g: Group) => g.id },
        ...groups.map(({ id }) => ({
          title: id,
          cell: (g: Group) => {
            const pair = pairs.find((p) => p.running === g.id && p.next === id);
            return pair === undefined ? '-' : cell(pair);
          },
          right: true,
          optional: 1,
        })),
      ],
      groups,
      NOTHING,
    );
  return [
    about,
    `\n${output.colors.bold('Next beside it')}: how likely, by how well both used machines together\n`,
    map(({ chance }) => `${shade(chance)} ${percent(chance)}`),
    `\n${output.colors.bold('Runs longer beside')} one that takes all of a device\n`,
    map(({ slowdown }) => (slowdown === null ? '-' : `${shade(slowdown.factor - 1)} ${slowdown.factor.toFixed(2)}x`)),
  ].join('\n');
}

function named({ templates, templateCount }: Group): string {
  const names = templates.slice(0, 3).map((t) => text(t));
  const more = templateCount - names.length;
  return `${names.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

/** A part of 1 in a character. */
function shade(of: number): string {
  const shades = [' ', '░', '▒', '▓', '█'];
  return shades[Math.max(0, Math.min(shades.length - 1, Math.ceil(of * (shades.length - 1) - 0.25)))] ?? ' ';
}
