/** bench/results/clusters: tables of benchmarks that compare presets on clusters, as text, for a page and the docs. */
import { z } from 'zod';

const plot = z.strictObject({
  title: z.string(),
  x: z.array(z.string()),
  xName: z.string(),
  isLog: z.boolean(),
  series: z.array(z.strictObject({ name: z.string(), values: z.array(z.number().nullable()) })),
});
export type Plot = z.infer<typeof plot>;

const table = z.strictObject({
  title: z.string(),
  note: z.string(),
  columns: z.array(z.string()),
  rows: z.array(z.array(z.string())),
  /** True: it is in the docs too. */
  isMain: z.boolean(),
  plot: plot.optional(),
});
export type Table = z.infer<typeof table>;

/** A target and what was seen. */
const figure = z.strictObject({ what: z.string(), reach: z.string(), seen: z.string(), met: z.boolean() });
export type Figure = z.infer<typeof figure>;

export const comparison = z.strictObject({
  title: z.string(),
  about: z.string().describe('One paragraph in Markdown without links.'),
  command: z.string(),
  part: z.enum(['tune', 'report']),
  when: z.iso.date(),
  commit: z.string(),
  figures: z.array(figure),
  tables: z.array(table),
});
export type Comparison = z.infer<typeof comparison>;
