import { Forecasting, type ForecastingParts, type Known, type Scene } from '../cycle/forecasting.ts';
import type { OutlookForecast } from '../market/forecast/table.ts';
import { FEATURES } from '../market/features/names.ts';
import { openForecast, type OpenedForecast } from '../models/preemption.ts';
import { modelInUse } from '../models/versions.ts';
import { modelPlaces } from './model-places.ts';

interface Parts {
  readonly dir: string;
  /** `history`, `model` or a version. */
  readonly name: string;
  readonly config: ForecastingParts['config'];
}

interface Opened {
  /** What `model` meant when it was opened. */
  readonly meant: string;
  readonly forecast: OpenedForecast;
  readonly forecasting: Forecasting;
}

/**
 * The forecast of an engine's directory, with the version that is in use there: what `ebb models use` chose meanwhile is asked from
 * the next forecast on.
 *
 * Lifecycle: opened when it is first asked; one question after the other, so that no model is closed while it answers; `close` ends it.
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
      await this.#opened?.forecast.close();
      this.#opened = null;
    });
  }

  #next<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work);
    this.#last = done.catch(() => undefined);
    return done;
  }

  async #current(): Promise<Opened> {
    const { dir, name, config } = this.#parts;
    const places = modelPlaces(dir);
    const meant = name === 'model' ? JSON.stringify(await modelInUse(places)) : name;
    if (this.#opened?.meant === meant) return this.#opened;
    const before = this.#opened;
    const forecast = await openForecast(name, places, FEATURES);
    this.#opened = { meant, forecast, forecasting: new Forecasting({ chosen: forecast, config }) };
    await before?.forecast.close();
    return this.#opened;
  }
}
