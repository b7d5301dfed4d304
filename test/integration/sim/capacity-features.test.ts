/**
 * What an engine knows of capacity while it runs, and what a data set says that it would: by two ways to the same
 * numbers.
 */
import { expect, it } from '@jest/globals';
import type { CapacityModel } from '../../../lib/domain/forecast.ts';
import { epochMs, plus, raw, seconds, type EpochMs } from '../../../lib/kernel/units.ts';
import { replayMarket } from '../../../lib/drivers/local/market/replay.ts';
import { observationsOf, type Happening } from '../../../lib/market/capacity-dataset.ts';
import { CAPACITY_FEATURES } from '../../../lib/market/features/capacity-features.ts';
import type { EventRecord } from '../../../lib/ports/store.ts';
import { onOffMarket, START } from '../../support/on-off-market.ts';
import { simulated, simulatedJob } from '../../support/simulated.ts';

const trace = onOffMarket([
  [0, 2],
  [2.6, 5],
  [7.5, 9],
  [9.2, 60],
]);
const spot = trace.pools.find((p) => p.option === 'spot');

/** What was committed and asked, in the order in which it was. */
type Logged = { readonly event: EventRecord } | { readonly askedMs: number; readonly row: Float32Array };

async function run(): Promise<readonly Logged[]> {
  if (spot === undefined) throw new Error('the market has no spot pool');
  const log: Logged[] = [];
  let now = (): EpochMs => epochMs(NaN);
  const model: CapacityModel = {
    version: 'listening',
    horizonsS: [3600],
    pools: new Set([spot.id]),
    run: async (rows) => {
      log.push({ askedMs: raw(now()), row: rows.slice() });
      return { kind: 'values', values: new Float32Array(rows.length / CAPACITY_FEATURES.length).fill(0.1) };
    },
  };
  const fromMs = epochMs(START);
  const jobs = [simulatedJob('a', 0, [8 * 3600], { deadlineS: 86_400, stage: { checkpoint } })];
  await simulated([...jobs, simulatedJob('b', 3600, [4 * 3600], { deadlineS: 86_400, stage: { checkpoint } })], {
    trace,
    market: (clock) => {
      now = clock;
      return replayMarket(trace, clock);
    },
    fromMs,
    toMs: plus(fromMs, seconds(48 * 3600)),
    capacity: { chosen: 'model', model, refused: null },
    onEvent: (event) => log.push({ event }),
  });
  return log;
}
const checkpoint = { signal: 'SIGTERM', graceS: seconds(60), everyS: null } as const;

/** The same as a life of the data set: by what was logged alone. */
function lifeOf(log: readonly Logged[]): Happening[] {
  if (spot === undefined) return [];
  const events = log.flatMap((l) => ('event' in l ? [l.event] : []));
  const of = (e: EventRecord): string => String(e.data['instance']);
  const refused = new Set(events.filter((e) => e.type === 'instance-failed').map(of));
  const launched = new Map(events.filter((e) => e.type === 'instance-requested').map((e) => [of(e), raw(e.atMs)]));
  const noticed = new Map(events.filter((e) => e.type === 'instance-warned').map((e) => [of(e), raw(e.atMs)]));
  return log.flatMap((logged): Happening[] => {
    if ('askedMs' in logged) return [{ kind: 'asked', pool: spot.id, atMs: logged.askedMs }];
    const { event } = logged;
    const [atMs, id] = [raw(event.atMs), of(event)];
    if (event.data['pool'] !== spot.id) return [];
    const at = { pool: spot.id, atMs };
    if (event.type === 'instance-requested') return refused.has(id) ? [] : [{ kind: 'launched', instance: id, ...at }];
    if (event.type === 'instance-failed') return [{ kind: 'refused', ...at }];
    if (event.type === 'instance-warned') return [{ kind: 'noticed', instance: id, ...at }];
    if (event.type !== 'instance-interrupted' && event.type !== 'instance-released') return [];
    const takenMs = event.type === 'instance-interrupted' ? (noticed.get(id) ?? atMs) : null;
    return [{ kind: 'ended', instance: id, ...at, launchedMs: launched.get(id) ?? NaN, takenMs }];
  });
}

it('features of a running engine are those of a data set', async () => {
  const log = await run();
  const life = lifeOf(log);
  const kinds = new Set(life.map((h) => h.kind));
  expect([...kinds].sort()).toEqual(['asked', 'ended', 'launched', 'noticed', 'refused']);
  // The model is asked only where something was seen, also while it has nothing to answer: no rows, then.
  const asked = log.flatMap((l) => ('askedMs' in l && l.row.length > 0 ? [l] : []));
  const observations = [...observationsOf(life)];
  expect(observations.length).toBeGreaterThan(50);
  expect(observations.map((s) => s.atMs)).toEqual(asked.map((a) => a.askedMs));
  observations.forEach((observed, i) => expect([...observed.features]).toEqual([...(asked[i]?.row ?? [])]));
}, 60_000);
