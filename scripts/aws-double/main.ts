/**
 * The AWS double for manual use: the used parts of EC2, ECS and CloudWatch Logs over a replayed market, on this
 * machine, without an account. docs/aws-double.md says what it plays.
 *
 *   npm run aws-double -- [--market FILE|DIR] [--from TIME] [--speed 60] [--port 4599] [--region us-east-1]
 *                         [--events URL] [--dir DIR] [--subnets ZONE=SUBNET,..] [--knobs JSON]
 *
 * It runs until stopped; its instances and tasks end with it.
 */
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { EbbError } from '../../lib/kernel/errors.ts';
import { epochMs, raw, type EpochMs } from '../../lib/kernel/units.ts';
import { openMarket } from '../../lib/drivers/local/market/import.ts';
import { defaultMarket, defaultMarketStartMs } from '../../lib/market/default-market.ts';
import type { MarketTrace } from '../../lib/market/trace.ts';
import { startAwsDouble } from './double.ts';
import { putEventsTo } from './events.ts';
import { knobsSchema, type KnobSettings } from './knobs.ts';

const OPTIONS = {
  market: { type: 'string' },
  from: { type: 'string' },
  speed: { type: 'string', default: '60' },
  port: { type: 'string', default: '4599' },
  region: { type: 'string', default: 'us-east-1' },
  events: { type: 'string' },
  dir: { type: 'string' },
  subnets: { type: 'string', default: '' },
  knobs: { type: 'string', default: '{}' },
} as const;

async function main(): Promise<void> {
  const values = given();
  const trace = values.market === undefined ? defaultMarket() : await imported(values.market);
  const double = await startAwsDouble({
    trace,
    from: startIn(trace, values.from, values.market === undefined ? defaultMarketStartMs : trace.startMs),
    speed: numberOf('--speed', values.speed, Number.MIN_VALUE),
    port: numberOf('--port', values.port, 0),
    region: values.region,
    subnets: pairsOf(values.subnets),
    knobs: knobsOf(values.knobs),
    ...(values.dir === undefined ? {} : { dir: values.dir }),
    ...(values.events === undefined ? {} : { deliver: putEventsTo(values.events) }),
  });
  const services = ['EC2', 'ECS', 'CLOUDWATCH_LOGS', 'ELASTIC_LOAD_BALANCING_V2', 'CLOUDWATCH'].map(
    (name) => `AWS_ENDPOINT_URL_${name}=${double.url}`,
  );
  process.stdout.write(
    [
      `the AWS double runs at ${double.url} on market ${trace.name}, ${iso(double.now())} at ${values.speed} times the wall`,
      `export ${services.join(' ')} AWS_REGION=${values.region} AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test`,
      `curl ${double.url}/_double            its clock, knobs and calls`,
      `curl ${double.url}/_double/events     what has happened`,
      '',
    ].join('\n'),
  );
  let isClosing = false;
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      if (!isClosing) void double.close().then(() => process.exit(0));
      isClosing = true;
    });
  }
}

function given() {
  try {
    return parseArgs({ options: OPTIONS }).values;
  } catch (error) {
    throw new EbbError('usage', { what: (error as Error).message, next: 'see docs/aws-double.md' });
  }
}

function knobsOf(text: string): KnobSettings {
  try {
    return knobsSchema.parse(JSON.parse(text));
  } catch (error) {
    const what = `--knobs is not JSON that sets knobs: ${(error as Error).message}`;
    throw new EbbError('usage', { what, got: text, next: 'see docs/aws-double.md' });
  }
}

/** Trace of an imported file, cached by its content. */
const imported = async (path: string): Promise<MarketTrace> =>
  (await openMarket(path, join(tmpdir(), `ebb-markets-${userInfo().username}`))).trace;

function startIn(trace: MarketTrace, given: string | undefined, otherwise: EpochMs): EpochMs {
  if (given === undefined) return otherwise;
  const ms = Date.parse(given);
  if (ms >= raw(trace.startMs) && ms < raw(trace.endMs)) return epochMs(ms);
  throw new EbbError('usage', {
    what: '--from is not a time within the market',
    got: given,
    allowed: `${iso(trace.startMs)} to ${iso(trace.endMs)}`,
    next: 'choose a time in between',
  });
}

function numberOf(name: string, text: string, least: number): number {
  const number = Number(text);
  if (text !== '' && Number.isFinite(number) && number >= least) return number;
  throw new EbbError('usage', {
    what: `${name} is not a number that it takes`,
    got: text,
    next: 'see docs/aws-double.md',
  });
}

function pairsOf(text: string): Record<string, string> {
  const pairs = text === '' ? [] : text.split(',').map((pair) => pair.split('='));
  return Object.fromEntries(pairs.map(([zone = '', subnet = '']) => [zone, subnet]));
}

const iso = (ms: EpochMs): string => new Date(raw(ms)).toISOString();

try {
  await main();
} catch (error) {
  if (!(error instanceof EbbError)) throw error;
  process.stderr.write(`${error.message}${error.facts.next === undefined ? '' : `\n${error.facts.next}`}\n`);
  process.exitCode = error.exit;
}
