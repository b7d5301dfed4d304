/** Models that forecast losses, chosen and opened for forecasting (lib/cycle/forecast/forecasting.ts). */
import { messageOf } from '../kernel/errors.ts';
import { poolId } from '../kernel/ids.ts';
import {
  BY_REGIME,
  FROM_HISTORY,
  FROM_OBSERVED,
  type CapacityModel,
  type ChosenCapacity,
  type ChosenForecast,
  type LossModel,
} from '../domain/forecast.ts';
import { openModel, type Model, type Opening, type Refusal } from './model.ts';
import { modelInUse, modelVersions, type ModelPlaces } from './versions.ts';

/** Separately forecast causes of a loss, with the folder of their versions. */
export const MODEL_OF = { price: 'preemption', capacity: 'capacity' } as const;
export type Risk = keyof typeof MODEL_OF;

interface Opened {
  /** Fault of the chosen model; null: none, or none was chosen. */
  readonly fault: Refusal['kind'] | null;
  close(): Promise<void>;
}
export type OpenedForecast = ChosenForecast & Opened;
export type OpenedCapacity = ChosenCapacity & Opened;

const nothing = async (): Promise<void> => undefined;

/**
 * The forecast of prices of that name: `history`, `model` (the version in use), `by-regime` (the same, asked of pools
 * whose price spikes alone, and opened by the first question) or a version. A fault of the model is
 * part of the answer, because history then answers. `features`: the program's columns, in order.
 */
export async function openForecast(
  chosen: string,
  places: ModelPlaces,
  features: readonly string[],
): Promise<OpenedForecast> {
  if (chosen === FROM_HISTORY.chosen) return { ...FROM_HISTORY, fault: null, close: nothing };
  if (chosen === BY_REGIME) return new OpenedLater(() => openVersion(null, places, features), features);
  const opening = await openVersion(chosen === 'model' ? null : chosen, places, features);
  if (opening.kind !== 'open') return refusedFor(chosen, opening);
  const { model } = opening;
  return { chosen, model: lossModel(model, features), refused: null, fault: null, close: () => model.close() };
}

/**
 * A forecast whose model is opened by the first question about a spiky pool: where prices are calm it costs neither
 * time nor memory. Lifecycle: refused from the first question on if the model cannot be opened; `close` ends it.
 */
class OpenedLater implements OpenedForecast {
  readonly chosen = BY_REGIME;
  readonly byRegime = true;
  readonly #open: () => Promise<Opening>;
  readonly #features: readonly string[];
  #opening: Promise<Opening> | null = null;
  #opened: LossModel | null = null;
  #refusal: Refusal | null = null;
  readonly model: LossModel;

  constructor(open: () => Promise<Opening>, features: readonly string[]) {
    this.#open = open;
    this.#features = features;
    const opened = (): LossModel | null => this.#opened;
    this.model = {
      get version() {
        return opened()?.version ?? 'in use';
      },
      get horizonsS() {
        return opened()?.horizonsS ?? [];
      },
      run: (rows) => this.#run(rows),
    };
  }

  get refused(): string | null {
    return this.#refusal?.what ?? null;
  }

  get fault(): Refusal['kind'] | null {
    return this.#refusal?.kind ?? null;
  }

  async close(): Promise<void> {
    const opening = await this.#opening;
    if (opening?.kind === 'open') await opening.model.close();
  }

  async #run(rows: Float32Array): ReturnType<LossModel['run']> {
    const opening = await (this.#opening ??= this.#open());
    if (opening.kind !== 'open') {
      this.#refusal = opening;
      return { kind: 'failed', what: opening.what };
    }
    this.#opened ??= lossModel(opening.model, this.#features);
    return this.#opened.run(rows);
  }
}

/** The same of capacity: `observed`, `model` or a version. */
export async function openCapacity(
  chosen: string,
  places: ModelPlaces,
  features: readonly string[],
): Promise<OpenedCapacity> {
  if (chosen === FROM_OBSERVED.chosen) return { ...FROM_OBSERVED, fault: null, close: nothing };
  const opening = await openVersion(chosen === 'model' ? null : chosen, places, features);
  if (opening.kind !== 'open') return refusedFor(chosen, opening);
  const { model } = opening;
  return { chosen, model: capacityModel(model, features), refused: null, fault: null, close: () => model.close() };
}

const refusedFor = (chosen: string, { what, kind }: Refusal) => ({
  chosen,
  model: null,
  refused: what,
  fault: kind,
  close: nothing,
});

async function openVersion(version: string | null, places: ModelPlaces, features: readonly string[]): Promise<Opening> {
  const inUse = version === null ? await modelInUse(places) : ({ kind: 'version', version } as const);
  if (inUse.kind === 'none') return { kind: 'missing', what: 'no trained model is deployed' } satisfies Refusal;
  if (inUse.kind === 'damaged') return inUse satisfies Refusal;
  const wanted = inUse.version;
  const versions = await modelVersions(places);
  const found = versions.find((v) => v.version === wanted);
  if (found !== undefined) return openModel(found.folder, features);
  const known = versions.map((v) => v.version).join(', ');
  const what = `there is no model ${wanted}; ${known === '' ? 'there is none at all' : `there are ${known}`}`;
  return { kind: 'missing', what } satisfies Refusal;
}

const capacityModel = (model: Model, features: readonly string[]): CapacityModel => ({
  ...lossModel(model, features),
  pools: new Set(model.manifest.pools?.map((name) => poolId(`${name}/spot`))),
});

/** Rows per batch: the runtime's memory between operators grows with them. */
const MOST_ROWS = 2000;

/** Rows have all `features`; a model takes those that its manifest names, in its order. */
export function lossModel(model: Model, features: readonly string[]): LossModel {
  const { input, output, version } = model.manifest;
  const columns = input.features.map((name) => features.indexOf(name));
  const isWhole = columns.length === features.length && columns.every((from, to) => from === to);
  const width = features.length;
  return {
    version,
    horizonsS: output.horizonsS,
    run: async (rows) => {
      const count = rows.length / width;
      const values = new Float32Array(count * output.width);
      try {
        for (let from = 0; from < count; from += MOST_ROWS) {
          const part = rows.subarray(from * width, Math.min(count, from + MOST_ROWS) * width);
          const answer = await model.run(isWhole ? part : gathered(part, width, columns));
          if (answer.kind !== 'values') return { ...answer, row: from + answer.row };
          values.set(answer.values, from * output.width);
        }
        return { kind: 'values', values };
      } catch (error) {
        return { kind: 'failed', what: messageOf(error) };
      }
    },
  };
}

function gathered(rows: Float32Array, width: number, columns: readonly number[]): Float32Array {
  const count = rows.length / width;
  const batch = new Float32Array(count * columns.length);
  for (let row = 0; row < count; row++) {
    for (let i = 0; i < columns.length; i++) {
      batch[row * columns.length + i] = rows[row * width + (columns[i] ?? 0)] ?? NaN;
    }
  }
  return batch;
}
