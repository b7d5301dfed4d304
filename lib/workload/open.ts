import { statSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { EbbError } from '../kernel/errors.ts';
import { arrange } from './arrange.ts';
import { resolveOptions, type ResolvedOptions, type WorkloadOptions } from './options.ts';
import type { Reader } from './reader.ts';
import { READERS } from './registry.ts';
import { sourceFiles, type SourceFile } from './source.ts';
import { isSynthetic, syntheticReader } from './synthetic.ts';
import { Tally } from './tally.ts';
import type { Workload, WorkloadJob, WorkloadReport } from './workload.ts';

/**
 * Workload by the user's name for it: a job file, a folder of them, a trace or its folder, or
 * `synthetic:KEY=NUMBER,...`. The format is detected unless the options name it. Throws EbbError `usage` for impossible
 * options. Throws `workload.invalid` for no file, no known format, or several workloads in one folder.
 */
export async function openWorkload(path: string, options: WorkloadOptions = {}): Promise<Workload> {
  const resolved = resolveOptions(options);
  if (isSynthetic(path)) {
    const reader = syntheticReader(path);
    refuseProduction(reader, resolved);
    return new OpenWorkload(path, { reader, files: [] }, resolved);
  }
  const files = await sourceFiles(path);
  const chosen = choose(path, files, resolved.format);
  refuseProduction(chosen.reader, resolved);
  return new OpenWorkload(basename(resolve(path)), chosen, resolved);
}

interface Choice {
  readonly reader: Reader;
  readonly files: readonly SourceFile[];
}

class OpenWorkload implements Workload {
  readonly name: string;
  readonly format: string;
  readonly notes: readonly string[];
  readonly mostJobs: number | null;
  readonly #choice: Choice;
  readonly #options: ResolvedOptions;
  #tally = new Tally();

  constructor(name: string, choice: Choice, options: ResolvedOptions) {
    this.name = name;
    this.format = choice.reader.format;
    this.notes = [...choice.reader.notes(options), ...notesOn(choice.reader, options)];
    this.mostJobs = mostJobsOf(choice.reader, options);
    this.#choice = choice;
    this.#options = options;
  }

  async *jobs(): AsyncGenerator<WorkloadJob> {
    const { reader, files } = this.#choice;
    const tally = new Tally();
    this.#tally = tally;
    const context = { options: this.#options, tally };
    yield* arrange(reader.read(files, context), reader, context);
    const report = tally.report();
    if (report.jobs === 0) throw nothingUsable(this.name, this.format, report);
  }

  report(): WorkloadReport {
    return this.#tally.report();
  }
}

/** Upper bound of the jobs: a scale of 1.5 repeats some once, one of 2 repeats all. */
function mostJobsOf({ jobs = Infinity }: Reader, { scale, jobsLimit = Infinity }: ResolvedOptions): number | null {
  const most = Math.min(jobs * Math.ceil(scale), jobsLimit);
  return Number.isFinite(most) ? most : null;
}

/** Effects of the options on the workload, in words. */
function notesOn(reader: Reader, { deadlines, scale, seed, unfinished }: ResolvedOptions): string[] {
  const notes: string[] = [];
  if (unfinished === 'as-run') notes.push('Work that did not finish counts as done when it ended.');
  if (scale !== 1) notes.push(`Arrivals times ${scale}, seed ${seed}.`);
  if (reader.keepsClass === true) return notes;
  if (deadlines === 'none') return [...notes, 'No deadlines: all jobs are best-effort.'];
  const { by, share, slackPercents, startDelayS } = deadlines;
  const which =
    by === 'production'
      ? 'of the jobs that the trace calls production'
      : `of ${Math.round(share * 100)} % of the ${by === 'recurring' ? 'templates' : 'jobs'}`;
  const slack = `slack of ${slackPercents.join(', ')} % of the running time`;
  return [...notes, `Deadlines are made: ${which}, ${slack}, and ${startDelayS} s to start each stage; seed ${seed}.`];
}

function refuseProduction(reader: Reader, { deadlines }: ResolvedOptions): void {
  if (deadlines === 'none' || deadlines.by !== 'production' || reader.tellsProduction === true) return;
  throw new EbbError('usage', {
    what: `workloads of format ${reader.format} do not mark production work`,
    got: 'deadlines by production',
    allowed: 'deadlines by seeded or recurring; by production for ' + telling.join(', '),
  });
}

/** List of formats, one per line. */
const FORMATS = READERS.map(({ format, about }) => `${format}: ${about}`).join('\n');

const telling = READERS.filter((r) => r.tellsProduction === true).map((r) => r.format);

function nothingUsable(name: string, format: string, { bad, dropped }: WorkloadReport): EbbError {
  const left = [...dropped].map(([why, count]) => `${count} ${why}`);
  const got = [`${bad.count} bad lines`, ...left].join(', ');
  return new EbbError('workload.invalid', {
    what: `the workload has no job that can be used, read as ${format}`,
    at: name,
    got,
    next:
      bad.first.length === 0
        ? 'See docs/workloads.md for what each format needs.'
        : 'See the lines named here and docs/workloads.md.',
    issues: bad.first.map(({ file, line, what }) => ({ at: `${file}:${line}`, message: what })),
  });
}

/** Reader and its files. */
function choose(path: string, files: readonly SourceFile[], format: string | undefined): Choice {
  const candidates = format === undefined ? found(files) : [named(format, files)];
  const usable = candidates.filter((c) => c.files.length > 0);
  const [only] = usable;
  if (only === undefined) throw unknownFormat(path, files, format);
  const isOne = usable.length === 1 && (only.files.length === 1 || only.reader.takesFolders === true);
  if (isOne) return only;
  throw new EbbError('workload.invalid', {
    what: 'the folder has several workloads',
    at: path,
    got: usable.flatMap((c) => c.files.slice(0, 3).map((f) => `${f.label} (${c.reader.format})`)).join(', '),
    next: 'Name one of the files, or a format.',
  });
}

/** Formats of the files by content; the first format that matches wins. */
function found(files: readonly SourceFile[]): Choice[] {
  const byReader = new Map<Reader, SourceFile[]>();
  for (const file of files) {
    const reader = READERS.find((r) => r.detects(file));
    if (reader !== undefined) byReader.set(reader, [...(byReader.get(reader) ?? []), file]);
  }
  const choices = [...byReader].map(([reader, of]) => ({ reader, files: of }));
  // The Google trace's table of jobs lies beside its attempts, which take names from it.
  const hasAttempts = choices.some((c) => c.reader.format === 'google-2011');
  return choices.filter((c) => !hasAttempts || c.reader.format !== 'google-2011-jobs');
}

function named(format: string, files: readonly SourceFile[]): Choice {
  const reader = READERS.find((r) => r.format === format);
  if (reader === undefined) {
    throw new EbbError('usage', {
      what: 'no such workload format',
      got: format,
      allowed: `${FORMATS}\n(synthetic:... is a path)`,
    });
  }
  return { reader, files: files.filter(reader.detects) };
}

function unknownFormat(path: string, files: readonly SourceFile[], format: string | undefined): EbbError {
  const one = files.length === 1 ? files[0]?.head.trim() : undefined;
  if (files.length === 0 || files.every((f) => statSync(f.path).size === 0)) {
    return new EbbError('workload.invalid', {
      what: 'the workload is empty',
      at: path,
      got: files.length === 0 ? 'a folder without files' : files.length === 1 ? 'an empty file' : 'empty files',
      allowed: FORMATS,
      next: 'docs/workloads.md shows how each format begins.',
    });
  }
  return new EbbError('workload.invalid', {
    what: format === undefined ? 'no workload in a known format' : `no workload of format ${format}`,
    at: path,
    got:
      one === ''
        ? 'an empty or unreadable file'
        : `${files.length} ${files.length === 1 ? 'file' : 'files'} of other contents`,
    allowed: FORMATS,
    next: 'docs/workloads.md shows how each format begins.',
  });
}
