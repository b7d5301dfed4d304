import { existsSync } from 'node:fs';
import { userInfo } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { EbbError } from '../../kernel/errors.ts';
import type { DatasetProgress } from '../../drivers/local/datasets/dataset-columns.ts';
import type { DatasetSource } from '../../drivers/local/datasets/dataset-folder.ts';
import { openMarket } from '../../drivers/local/market/import.ts';
import { judge, type Candidate } from '../../drivers/local/models/judging.ts';
import { ownHistory, ownRecord } from '../../drivers/local/models/own-history.ts';
import { JUDGED_SPLIT, judgedRows, type Drawing } from '../../drivers/local/models/samples.ts';
import { trainVersion, type Training } from '../../drivers/local/models/training.ts';
import { knownChoices } from '../../models/choices.ts';
import { versionNamed } from '../../models/library.ts';
import { MODEL_FILE, versionName } from '../../models/manifest.ts';
import type { Risk } from '../../models/preemption.ts';
import { modelInUse, type ModelPlaces } from '../../models/versions.ts';
import { modelPlaces } from '../../drivers/local/models/model-places.ts';
import { elsewhere, type Action, type Context } from '../context.ts';
import { engineRecord } from '../engine-record.ts';
import { json } from '../output.ts';
import { endedByStop, onStopRequest, SIGNAL_EXIT, type StopSignal } from '../signals.ts';
import { judgementText, trainingText } from '../views/model-views.ts';
import { noneInUse, placesOf } from './models.ts';
import type { DrawnOptions, EvaluateOptions, TrainOptions } from '../flags/model-flags.ts';

/** Default numbers of random instants: prices per market, capacity per pool. */
const USUAL = { price: { train: 50_000, evaluate: 20_000 }, capacity: { train: 3000, evaluate: 3000 } } as const;

export const evaluate: Action<EvaluateOptions> = async (context, [named], options) => {
  const { output, json: asJson } = context;
  const places = placesFor(context, options);
  const candidates = await candidatesOf(context, places, { named, risk: options.risk });
  const { seed, risk, instants = USUAL[risk].evaluate } = options;
  const { from, drawn } = await endedByStop(output, 'stopped', async () => {
    const from = await drawnFrom(context, options);
    return { from, drawn: await judgedRows({ risk, from, seed, instants, onProgress: drawingNotes(context) }) };
  });
  output.note('asking the forecasts ...');
  const traces = 'own' in from ? [] : from.traces.map((s) => s.trace);
  const judgement = await judge(candidates, { risk, rows: drawn, traces, split: JUDGED_SPLIT, seed });
  if (asJson) json(output, judgement);
  else output.line(judgementText(output, judgement));
};

/** Candidates: the named version, or the one in use; then the one in use if it is another. */
async function candidatesOf(
  { world }: Context,
  places: ModelPlaces,
  { named, risk }: { readonly named: string | undefined; readonly risk: Risk },
): Promise<readonly Candidate[]> {
  const used = await usedIn(places);
  if (named === undefined) {
    if (used !== null) return [used];
    throw noneInUse(risk);
  }
  const folder = resolve(world.cwd, named);
  const wanted = existsSync(join(folder, MODEL_FILE))
    ? { name: basename(folder), folder }
    : await versionAsCandidate(places, named);
  if (used === null || used.folder === wanted.folder) return [wanted];
  // A folder may have the same name as the version in use.
  return [wanted.name === used.name ? { ...wanted, name: folder } : wanted, used];
}

async function usedIn(places: ModelPlaces): Promise<Candidate | null> {
  const inUse = await modelInUse(places);
  return inUse.kind === 'version' ? versionAsCandidate(places, inUse.version) : null;
}

async function versionAsCandidate(places: ModelPlaces, version: string): Promise<Candidate> {
  const { folder } = await versionNamed(places, version);
  return { name: version, folder };
}

/** Source of capacity records: a remote engine; null: --dir or none. */
const toldBy = ({ risk, markets, ...options }: DrawnOptions): string | null =>
  risk === 'capacity' && markets === undefined ? elsewhere(options) : null;

/** Folders of versions: always on this machine, even with records of a remote engine. */
const placesFor = (context: Context, options: DrawnOptions) =>
  toldBy(options) === null
    ? placesOf(context, options)
    : modelPlaces(resolve(context.world.cwd, options.dir), options.risk);

/** Source of the data: named histories, else the named remote engine, else --dir. */
async function drawnFrom(context: Context, options: DrawnOptions): Promise<Drawing['from']> {
  const dir = resolve(context.world.cwd, options.dir);
  const { markets, risk } = options;
  if (markets !== undefined) return { traces: await tracesOf(context, { ...options, dir, markets }) };
  if (risk === 'price') return { traces: [await ownHistory(dir)] };
  const engine = toldBy(options);
  if (engine === null) return { own: await ownRecord(dir) };
  context.output.note('asking for the instances that were held ...');
  return { own: await engineRecord(await context.client(), engine) };
}

async function tracesOf(
  { world, output }: Context,
  options: DrawnOptions & { readonly markets: readonly string[] },
): Promise<readonly DatasetSource[]> {
  const catalogue =
    options.catalogue === undefined
      ? {}
      : {
          catalogue: await (
            await import('../../drivers/local/market/catalogue.ts')
          ).catalogueFromFile(options.catalogue),
        };
  const sources: DatasetSource[] = [];
  for (const market of options.markets) {
    output.note(`reading ${market} ...`);
    const path = resolve(world.cwd, market);
    sources.push({
      name: basename(path),
      trace: (await openMarket(path, join(options.dir, 'markets'), catalogue)).trace,
    });
  }
  return sources;
}

/** Notes while drawing data. */
const drawingNotes =
  ({ output }: Context) =>
  ({ source, rows }: DatasetProgress): void =>
    output.note(`drawing samples from ${source}: ${rows.toLocaleString('en-US')}`);

const STOPPED = 'stopped; nothing was changed';

export const train: Action<TrainOptions> = async (context, _args, options) => {
  const { output, json: asJson, world } = context;
  const places = placesFor(context, options);
  if (options.risk === 'capacity' && options.model === 'lstm') throw noSequence();
  const at = new Date().toISOString();
  const version = await freeName(places, options.name, `${at.slice(0, 10)}-${options.model}`);
  // A damaged file of choices is refused before the work: the new version would be added to it.
  knownChoices(places.own);
  const current = await usedIn(places);
  const from = await endedByStop(output, STOPPED, () => drawnFrom(context, options));
  const { seed, risk, model: kind, instants = USUAL[risk].train } = options;
  const python = options.python?.includes('/') === true ? resolve(world.cwd, options.python) : (options.python ?? null);
  const drawing = { risk, from, seed, instants, onProgress: drawingNotes(context) };
  const abort = new AbortController();
  const unlisten = onStopRequest((_, signal) => abort.abort(signal));
  let training: Training;
  try {
    training = await trainVersion(
      { own: places.own, version, kind, drawing, python, current, by: userInfo().username, at },
      { env: world.env, say: (text) => output.note(text), signal: abort.signal },
    );
  } catch (error) {
    if (!abort.signal.aborted) throw error;
    output.note(STOPPED);
    return SIGNAL_EXIT[abort.signal.reason as StopSignal];
  } finally {
    unlisten();
  }
  if (asJson) json(output, training);
  else output.line(trainingText(output, training));
  return 0;
};

const noSequence = (): EbbError =>
  new EbbError('usage', {
    what: 'the network of the paper reads a sequence of prices, and capacity has none',
    next: 'train trees: leave out --model lstm',
  });

/** Name of the new version: as given, else the usual one with a number if it is taken. Throws `usage`. */
async function freeName({ own, shipped }: ModelPlaces, given: string | undefined, usual: string): Promise<string> {
  const isTaken = (name: string): boolean =>
    [own, shipped].some((place) => place !== null && existsSync(join(place, name)));
  if (given === undefined) {
    let name = usual;
    for (let n = 2; isTaken(name); n++) name = `${usual}.${n}`;
    return name;
  }
  if (versionName.safeParse(given).success && !isTaken(given)) return given;
  throw new EbbError('usage', {
    what: '--name cannot be the name of the new version',
    got: given,
    allowed: 'letters, digits, `_`, `.` and `-`, and no existing version: see `ebb models list`',
  });
}
