import { describe, expect, it } from '@jest/globals';
import { forecastsTable, originText } from '../../../lib/cli/views/forecasts-view.ts';
import { PLAIN } from '../../support/run-ebb.ts';

const ORIGIN = { chosen: 'model', refused: null, version: 'v7', byModel: 3, byHistory: [] };

describe('the table of forecasts', () => {
  it('draws how likely a bid is kept, and reads it at the horizons of its columns', () => {
    // Half is lost in three hours, nothing after: linear until then.
    const bid = {
      bid: 0.05,
      horizonS: [10_800, 86_400],
      pInterrupted: [0.5, 0.5],
      reason: 'x',
      drivers: { aboveUsd: 0.01, lastAboveS: 7200, knownS: 604_800, range24hUsd: 0.02 },
    };
    const none = { ...bid, bid: 'uncapped' as const, pInterrupted: [0, 0], drivers: null };
    const shown = forecastsTable(PLAIN, [
      { pool: 'c5.large/us-east-1a/spot', priceUsdPerHour: 0.04, bids: [bid, none] },
    ]).split('\n');
    // Kept: 83 %, 67 % and then 50 %, of eight levels.
    expect(shown[1]).toMatch(
      /^c5\.large\/us-east-1a\/spot +\$0\.0400\/h +\$0\.0500\/h +▇▅▄{22} +99% +96% +83% +50% +50% +50% +2h 00m ago$/,
    );
    expect(shown[2]).toMatch(/^ +uncapped +█{24} +(?:100% +){6}-$/);
  });
});

const CAPACITY = { chosen: 'model', refused: null, version: 'c3', byModel: 2, byObserved: [] };

describe('who forecast', () => {
  it.each([
    [null, 'forecast from history'],
    [{ ...ORIGIN, chosen: 'history', version: null, byModel: 0 }, 'forecast from history'],
    [ORIGIN, 'prices by the model v7'],
    [
      { ...ORIGIN, byHistory: [{ why: 'there is no price yet', bids: 2 }] },
      'prices by the model v7; 2 bids from history: there is no price yet',
    ],
    [
      { ...ORIGIN, refused: 'it is damaged', version: null, byModel: 0 },
      'forecast from history, for model cannot be asked: it is damaged',
    ],
    [
      { ...ORIGIN, version: null, byModel: 0, byHistory: [{ why: 'it gives no numbers', bids: 9 }] },
      'model answered nothing; 9 bids from history: it gives no numbers',
    ],
    [{ ...ORIGIN, capacity: CAPACITY }, 'prices by the model v7; capacity by the model c3'],
    [
      { ...ORIGIN, capacity: { ...CAPACITY, byObserved: [{ why: 'nothing was seen of it yet', pools: 1 }] } },
      'prices by the model v7; capacity by the model c3; 1 pool from observed interruptions: nothing was seen of it yet',
    ],
    [
      { ...ORIGIN, capacity: { ...CAPACITY, version: null, refused: 'it is damaged' } },
      'prices by the model v7; capacity from observed interruptions, for model cannot be asked: it is damaged',
    ],
  ])('is said in a line: %#', (origin, line) => expect(originText(origin)).toBe(line));
});
