import { Forecasting, type ForecastingParts, type Known } from '../../../cycle/forecast/forecasting.ts';
import { BY_REGIME } from '../../../domain/forecast.ts';
import type { Scene } from '../../../policy/asks.ts';
import type { OutlookForecast } from '../../../market/forecast/forecast-data.ts';
import { CAPACITY_FEATURES } from '../../../market/features/capacity-features.ts';
import { FEATURES } from '../../../market/features/names.ts';
import { openCapacity, openForecast, type OpenedCapacity, type OpenedForecast } from '../../../models/preemption.ts';
import { modelInUse, type ModelPlaces } from '../../../models/versions.ts';
import { modelPlaces } from '../models/model-places.ts';

interface Parts {
  readonly dir: string;
  /** Forecast of prices: `history`, `by-regime`, `model` or a version. `config` has that of capacity. */
  readonly name: string;
  readonly config: ForecastingParts['config'];
  /** Questions to it; default: every bid that is tried. */
  readonly asks?: NonNullable<ForecastingParts['asks']>;
}

interface Opened {
  /** Versions behind the chosen names at the time of opening. */
  readonly meant: string;
  readonly forecast: OpenedForecast;
  readonly capacity: OpenedCapacity;
  readonly forecasting: Forecasting;
}

const closed = async ({ forecast, capacity }: Opened): Promise<void> => {
  await forecast.close();
  await capacity.close();
};

/**
 * The forecast of an engine's directory, with the version in use there: a new choice of `ebb models use` is taken up at
 * the next forecast.
 * Lifecycle: opened on first use; one question after the other, so that no model is closed while it answers; `close`
 * ends it.
 */
export class ForecastInUse {
  readonly #parts: Parts;
  #opened: Opened | null = null;
  #last: Promise<unknown> = Promise.resolve();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  of(scene: Scene, known: Known): Promise<OutlookForecast> {
    return this.#next(async () => (await this.#current()).forecasting.of(scene, known));
  }

  close(): Promise<void> {
    return this.#next(async () => {
      if (this.#opened !== null) await closed(this.#opened);
      this.#opened = null;
    });
  }

  #next<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work);
    this.#last = done.catch(() => undefined);
    return done;
  }

  async #current(): Promise<Opened> {
    const { dir, name, config, asks } = this.#parts;
    const places = { price: modelPlaces(dir), capacity: modelPlaces(dir, 'capacity') };
    const meant = `${await meaning(name, places.price)} ${await meaning(config.capacityForecast, places.capacity)}`;
    if (this.#opened?.meant === meant) return this.#opened;
    const before = this.#opened;
    const forecast = await openForecast(name, places.price, FEATURES);
    const capacity = await openCapacity(config.capacityForecast, places.capacity, CAPACITY_FEATURES);
    const forecasting = new Forecasting({ chosen: forecast, capacity, config, ...(asks && { asks }) });
    this.#opened = { meant, forecast, capacity, forecasting };
    if (before !== null) await closed(before);
    return this.#opened;
  }
}

const meaning = async (name: string, places: ModelPlaces): Promise<string> =>
  name === 'model' || name === BY_REGIME ? JSON.stringify(await modelInUse(places)) : name;
