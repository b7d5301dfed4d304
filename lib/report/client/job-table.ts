/**
 * Table of any number of jobs with elements for the rows in view only. The pane scrolls over an empty box as high as
 * all rows. Browsers limit heights: above MOST_PX the scroll position counts as a share, not as pixels.
 */
import { count, dollars, duration, minute, NONE, percent, second } from './format.ts';
import { byId, el } from './dom.ts';
import { rowsOf, textAt, type Filter, type JobTable, type Query, type SortKey } from './job-rows.ts';

const ROW_PX = 30;
/** Greatest height of the pane, and the height of its head, borders and scroll bar. */
const PANE_PX = 460;
const PANE_SPARE_PX = 54;
/** Greatest height of the box. Firefox allows elements up to about 17.9 million pixels. */
const MOST_PX = 8_000_000;
/** Spare rows beyond the pane's edges, so that scrolling by a row shows no gap. */
const SPARE_ROWS = 4;

interface Shown {
  readonly sort: SortKey;
  readonly title: string;
  readonly hint: string;
  readonly right?: true;
  readonly cell: (table: JobTable, row: number) => string;
}

const COLUMNS: readonly Shown[] = [
  { sort: 'key', title: 'Job', hint: 'its key in the workload', cell: ({ jobs }, i) => textAt(jobs, 'key', i) },
  { sort: 'name', title: 'Name', hint: 'name of the job', cell: ({ jobs }, i) => textAt(jobs, 'name', i) },
  { sort: 'owner', title: 'Owner', hint: 'who submitted it', cell: ({ jobs }, i) => textAt(jobs, 'owner', i) },
  { sort: 'class', title: 'Class', hint: 'class of the job', cell: ({ jobs }, i) => textAt(jobs, 'class', i) },
  { sort: 'fate', title: 'Outcome', hint: 'what became of it', cell: ({ fate }, i) => fate[i] ?? '' },
  number('tasks', 'Tasks', 'number of tasks', ({ jobs }, i) => count(jobs.tasks[i] ?? NaN)),
  number('submittedMs', 'Submitted', 'when it was submitted, UTC', ({ jobs }, i) => minute(jobs.submittedMs[i] ?? NaN)),
  number('waitedS', 'Waited', 'submission to first start', ({ waitedS }, i) => duration(waitedS[i] ?? NaN)),
  number('tookS', 'Took', 'submission to completion', ({ tookS }, i) => duration(tookS[i] ?? NaN)),
  number('lateS', 'Late by', 'completion after the deadline; negative: before it', ({ lateS }, i) =>
    duration(lateS[i] ?? NaN),
  ),
  number('costUsd', 'Cost', 'work and wasted work, USD', ({ costUsd }, i) => dollars(costUsd[i] ?? NaN)),
  number('onDemandUsd', 'On demand', 'its work at on-demand prices, USD', ({ jobs }, i) =>
    dollars(jobs.onDemandUsd[i] ?? NaN),
  ),
  number('interruptions', 'Interrupted', 'attempts that the market ended', ({ jobs }, i) =>
    count(jobs.interruptions[i] ?? NaN),
  ),
];

function number(sort: SortKey, title: string, hint: string, cell: Shown['cell']): Shown {
  return { sort, title, hint, right: true, cell };
}

export class JobTableView {
  readonly #head = byId('job-head', HTMLElement);
  readonly #pane = byId('job-pane', HTMLElement);
  readonly #space = byId('job-space', HTMLElement);
  readonly #body = byId('job-rows', HTMLElement);
  readonly #found = byId('job-found', HTMLElement);
  readonly #detail = byId('job-detail', HTMLElement);
  readonly #headers = new Map<SortKey, HTMLElement>();
  #table: JobTable | null = null;
  #rows: Uint32Array = new Uint32Array(0);
  #query: Query = { text: '', filter: 'all', class: 'all', sort: 'submittedMs', descending: false };
  #current = -1;
  #frame = 0;

  constructor() {
    for (const column of COLUMNS) {
      const button = el('button', { type: 'button', title: `Sort by ${column.hint}` }, column.title);
      button.addEventListener('click', () => this.#sortBy(column.sort));
      const header = el('div', { role: 'columnheader', class: `cell ${column.sort}` }, button);
      this.#headers.set(column.sort, header);
      this.#head.append(header);
    }
    const search = byId('job-search', HTMLInputElement);
    const filter = byId('job-filter', HTMLSelectElement);
    const kind = byId('job-class', HTMLSelectElement);
    search.addEventListener('input', () => this.#ask({ text: search.value }));
    filter.addEventListener('change', () => this.#ask({ filter: filter.value as Filter }));
    kind.addEventListener('change', () => this.#ask({ class: kind.value }));
    this.#pane.addEventListener('scroll', () => this.#drawSoon(), { passive: true });
    this.#pane.addEventListener('keydown', (event) => this.#onKey(event));
    this.#body.addEventListener('click', (event) => this.#onClick(event));
    new ResizeObserver(() => this.#drawSoon()).observe(this.#pane);
  }

  /** Shows the jobs of a run; null: they are not in the report. */
  show(table: JobTable | null): void {
    this.#table = table;
    this.#ask({});
  }

  #ask(change: Partial<Query>): void {
    this.#query = { ...this.#query, ...change };
    const table = this.#table;
    this.#rows = table === null ? new Uint32Array(0) : rowsOf(table, this.#query);
    const all = table?.jobs.rows ?? 0;
    this.#found.textContent =
      table === null
        ? 'The jobs of this run were left out to keep the file small.'
        : `${count(this.#rows.length)} of ${count(all)} jobs`;
    for (const [sort, header] of this.#headers) {
      const state = sort !== this.#query.sort ? 'none' : this.#query.descending ? 'descending' : 'ascending';
      header.setAttribute('aria-sort', state);
    }
    this.#pane.setAttribute('aria-rowcount', String(this.#rows.length + 1));
    this.#current = -1;
    this.#detail.replaceChildren();
    this.#space.style.height = `${this.#boxPx()}px`;
    this.#pane.style.height = `${Math.min(this.#boxPx() + PANE_SPARE_PX, PANE_PX)}px`;
    this.#pane.scrollTop = 0;
    this.#draw();
  }

  #sortBy(sort: SortKey): void {
    const again = this.#query.sort === sort;
    const largestFirst = COLUMNS.some((c) => c.sort === sort && c.right === true && sort !== 'submittedMs');
    this.#ask({ sort, descending: again ? !this.#query.descending : largestFirst });
  }

  #drawSoon(): void {
    if (this.#frame !== 0) return;
    this.#frame = requestAnimationFrame(() => this.#draw());
  }

  /** First row in view, with a fraction: scrollTop / ROW_PX if the box has its natural height. */
  #firstRow(viewPx: number): number {
    const travelPx = this.#boxPx() - viewPx;
    if (travelPx <= 0) return 0;
    return (this.#pane.scrollTop / travelPx) * Math.max(this.#rows.length - viewPx / ROW_PX, 0);
  }

  #draw(): void {
    this.#frame = 0;
    const table = this.#table;
    if (table === null) {
      this.#body.replaceChildren();
      return;
    }
    const viewPx = this.#viewPx();
    const exact = this.#firstRow(viewPx);
    const from = Math.max(Math.floor(exact) - SPARE_ROWS, 0);
    const to = Math.min(Math.ceil(exact + viewPx / ROW_PX) + SPARE_ROWS, this.#rows.length);
    const rows: HTMLElement[] = [];
    for (let k = from; k < to; k++) rows.push(this.#row(table, k));
    this.#body.replaceChildren(...rows);
    if (this.#current < 0) this.#pane.removeAttribute('aria-activedescendant');
    else this.#pane.setAttribute('aria-activedescendant', `job-row-${this.#current}`);
    // Position of the top row relative to the scroll position.
    this.#body.style.transform = `translateY(${this.#pane.scrollTop + (from - exact) * ROW_PX}px)`;
  }

  #row(table: JobTable, place: number): HTMLElement {
    const i = this.#rows[place] ?? 0;
    const bad = table.missed[i] === 1 || table.fate[i] === 'failed';
    const cells = COLUMNS.map((c) => {
      const text = c.cell(table, i);
      const late = bad && (c.sort === 'fate' || c.sort === 'lateS') ? ' bad' : '';
      return el('div', { role: 'gridcell', class: `cell ${c.sort}${late}`, title: text }, text);
    });
    const current = place === this.#current;
    const kind = `row${place % 2 === 0 ? '' : ' odd'}${current ? ' current' : ''}`;
    const row = el(
      'div',
      { role: 'row', class: kind, id: `job-row-${place}`, 'aria-selected': String(current) },
      ...cells,
    );
    row.setAttribute('aria-rowindex', String(place + 2));
    row.dataset['place'] = String(place);
    return row;
  }

  #onKey(event: KeyboardEvent): void {
    if (event.target !== this.#pane) return;
    const page = Math.max(Math.floor(this.#viewPx() / ROW_PX) - 1, 1);
    const by: Readonly<Record<string, number>> = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: page,
      PageUp: -page,
      Home: -Infinity,
      End: Infinity,
    };
    const step = by[event.key];
    if (step === undefined || this.#rows.length === 0) return;
    event.preventDefault();
    this.#choose(Math.min(Math.max(this.#current + step, 0), this.#rows.length - 1));
  }

  #onClick(event: MouseEvent): void {
    const row = event.target instanceof Element ? event.target.closest<HTMLElement>('[data-place]') : null;
    if (row !== null) this.#choose(Number(row.dataset['place']));
  }

  /** Selects a row, scrolls to it and shows its job. */
  #choose(place: number): void {
    if (this.#table === null) return;
    this.#current = place;
    const viewRows = this.#viewPx() / ROW_PX;
    const first = this.#firstRow(this.#viewPx());
    if (place < first) this.#scrollTo(place);
    else if (place + 1 > first + viewRows) this.#scrollTo(place + 1 - viewRows);
    this.#detail.replaceChildren(...detail(this.#table, this.#rows[place] ?? 0));
    this.#draw();
  }

  #scrollTo(firstRow: number): void {
    const travelRows = this.#rows.length - this.#viewPx() / ROW_PX;
    if (travelRows > 0) this.#pane.scrollTop = (firstRow / travelRows) * (this.#boxPx() - this.#viewPx());
  }

  #boxPx(): number {
    return Math.min(this.#rows.length * ROW_PX, MOST_PX);
  }

  /** Height of the pane below its head. */
  #viewPx(): number {
    return Math.max(this.#pane.clientHeight - this.#head.offsetHeight, ROW_PX);
  }
}

/** Details of one job, with exact times. */
function detail(table: JobTable, i: number): readonly Node[] {
  const { jobs } = table;
  const costUsd = table.costUsd[i] ?? 0;
  const onDemandUsd = jobs.onDemandUsd[i] ?? NaN;
  const entries: readonly (readonly [string, string])[] = [
    ['Job', `${textAt(jobs, 'key', i)} (${textAt(jobs, 'name', i)}, ${textAt(jobs, 'owner', i)})`],
    ['Outcome', `${table.fate[i] ?? ''} (${textAt(jobs, 'state', i)})`],
    ['Submitted', second(jobs.submittedMs[i] ?? NaN)],
    ['Started', second(jobs.startedMs[i] ?? NaN)],
    ['Finished', second(jobs.finishedMs[i] ?? NaN)],
    ['Deadline', second(jobs.deadlineMs[i] ?? NaN)],
    ['Work', dollars(jobs.workUsd[i] ?? NaN)],
    ['Wasted', dollars(jobs.wastedUsd[i] ?? NaN)],
    ['Speculative', dollars(jobs.speculativeUsd[i] ?? NaN)],
    ['Moved', dollars(jobs.movedUsd[i] ?? NaN)],
    ['Idle', dollars(jobs.idleUsd[i] ?? NaN)],
    ['Of on-demand', onDemandUsd > 0 ? percent(costUsd / onDemandUsd) : NONE],
  ];
  return entries.flatMap(([name, value]) => [el('dt', {}, name), el('dd', {}, value)]);
}
