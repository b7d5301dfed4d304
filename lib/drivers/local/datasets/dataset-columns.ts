import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextPass } from 'node:timers/promises';
import { EbbError } from '../../../kernel/errors.ts';
import { NpyWriter, type NpyType } from './npy-file.ts';
import { onSuddenEnd } from '../sudden-end.ts';

/**
 * Folder of a data set: one NumPy file per column and a manifest. Written as `NAME.PID.partial` and renamed when
 * complete, so that nobody trains on half of one. Market files are written alike (lib/drivers/local/market/file.ts).
 */
export const DATASET_VERSION = 1;
const MANIFEST = 'manifest.json';

/** Rows of a source drawn so far. */
export interface DatasetProgress {
  readonly source: string;
  readonly rows: number;
}

/** Rows between two pauses, in which a request to stop is heard. */
const ROWS_AT_A_TIME = 10_000;

/**
 * Reports progress every ROWS_AT_A_TIME rows, and yields to the event loop. A throw of `onProgress` ends the drawing.
 */
export async function told(progress: DatasetProgress, onProgress: (progress: DatasetProgress) => void): Promise<void> {
  if (progress.rows % ROWS_AT_A_TIME !== 0) return;
  await nextPass();
  onProgress(progress);
}

/**
 * Throws `usage` if the folder is not empty. `fill` writes the columns and returns the manifest; if it throws, or the
 * process ends before it is done, nothing is left.
 */
export async function writeWhole<M extends object>(
  folder: string,
  fill: (partial: string) => Promise<M> | M,
): Promise<M> {
  if (existsSync(folder) && readdirSync(folder).length > 0) {
    throw new EbbError('usage', {
      what: 'the folder for the data set is not empty',
      got: folder,
      next: 'Name another, or remove it.',
    });
  }
  const partial = `${folder}.${process.pid}.partial`;
  mkdirSync(partial, { recursive: true });
  const unwatch = onSuddenEnd(() => rmSync(partial, { recursive: true, force: true }));
  try {
    const manifest = await fill(partial);
    writeFileSync(join(partial, MANIFEST), `${JSON.stringify(manifest, null, 2)}\n`);
    rmSync(folder, { recursive: true, force: true });
    renameSync(partial, folder);
    return manifest;
  } catch (error) {
    rmSync(partial, { recursive: true, force: true });
    throw error;
  } finally {
    unwatch();
  }
}

export type ColumnTypes = Readonly<Record<string, NpyType>>;
export type Columns<C extends ColumnTypes> = Readonly<Record<keyof C & string, NpyWriter>>;

/** Open columns. @param widths numbers in a row of the columns with more than one. */
export const columnsIn = <C extends ColumnTypes>(
  folder: string,
  types: C,
  widths: Partial<Record<keyof C & string, number>>,
): Columns<C> =>
  Object.fromEntries(
    Object.entries(types).map(([name, type]) => [
      name,
      new NpyWriter(join(folder, `${name}.npy`), type, widths[name] ?? 0),
    ]),
  ) as Columns<C>;

/** Completes the files: SHA-256 of each column's numbers. */
export const closeColumns = <C extends ColumnTypes>(columns: Columns<C>): Record<keyof C & string, string> =>
  Object.fromEntries(Object.entries<NpyWriter>(columns).map(([name, column]) => [name, column.close()])) as Record<
    keyof C & string,
    string
  >;
