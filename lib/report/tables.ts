/** Tables of figures, one column each, with their intervals. */
import type { Estimate, Interval } from './bootstrap.ts';
import { NONE } from './client/format.ts';
import { html, type Markup } from './markup.ts';

/** Figure above its interval, unless both ends read alike. */
export function figure(estimate: Estimate | null, format: (x: number) => string): Markup {
  if (estimate === null || estimate.value === null) return html`${NONE}`;
  const { value, interval } = estimate;
  const range = rangeOf(interval, format);
  return range === null ? html`${format(value)}` : html`${format(value)}<span class="interval">${range}</span>`;
}

export function rangeOf(interval: Interval | null, format: (x: number) => string): string | null {
  if (interval === null) return null;
  const [low, high] = [format(interval.low), format(interval.high)];
  return low === high ? null : `${low} to ${high}`;
}

export interface Column<T> {
  readonly title: string;
  readonly hint: string;
  readonly cell: (row: T) => Markup;
  readonly bad?: (row: T) => boolean;
}

/** False for a column without any figure. */
export const hasFigures =
  <T>(rows: readonly T[]) =>
  (column: Column<T>): boolean =>
    rows.some((row) => column.cell(row).html !== NONE);

export function tableOf<T>(
  first: string,
  columns: readonly Column<T>[],
  rows: readonly T[],
  name: (row: T) => string,
): Markup {
  return html`<div class="scroll" tabindex="0" role="region" aria-label="${first}: figures">
    <table>
      <thead>
        <tr>
          <th scope="col">${first}</th>
          ${columns.map((c) => html`<th scope="col" class="right" title="${c.hint}">${c.title}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${rows.map(
          (row) =>
            html`<tr>
              <th scope="row">${name(row)}</th>
              ${columns.map((c) => html`<td class="right ${c.bad?.(row) === true ? 'bad' : ''}">${c.cell(row)}</td>`)}
            </tr> `,
        )}
      </tbody>
    </table>
  </div>`;
}
