/**
 * Opens the forecast of that name and asks it, in a process of its own, for the reason that ask-model.ts has.
 * `node test/support/ask-forecast.ts < Question` prints an Answered.
 */
import { readFileSync } from 'node:fs';
import { FEATURES } from '../../lib/market/features/names.ts';
import { openForecast } from '../../lib/models/preemption.ts';
import type { ModelPlaces } from '../../lib/models/versions.ts';

export interface ForecastQuestion {
  readonly chosen: string;
  readonly places: ModelPlaces;
  readonly batches: readonly (readonly number[])[];
}

export interface ForecastAnswered {
  readonly chosen: string;
  readonly refused: string | null;
  readonly fault: string | null;
  readonly version: string | null;
  readonly answers: readonly (readonly number[] | string)[];
}

async function answered({ chosen, places, batches }: ForecastQuestion): Promise<ForecastAnswered> {
  const opened = await openForecast(chosen, places, FEATURES);
  const answers: (readonly number[] | string)[] = [];
  for (const batch of opened.model === null ? [] : batches) {
    const answer = await opened.model?.run(Float32Array.from(batch));
    answers.push(answer?.kind === 'values' ? [...answer.values] : JSON.stringify(answer));
  }
  await opened.close();
  const { refused, fault } = opened;
  return { chosen: opened.chosen, refused, fault, version: opened.model?.version ?? null, answers };
}

process.stdout.write(JSON.stringify(await answered(JSON.parse(readFileSync(0, 'utf8')) as ForecastQuestion)));
