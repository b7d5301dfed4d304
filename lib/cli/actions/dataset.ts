import { basename, resolve } from 'node:path';
import { EbbError } from '../../kernel/errors.ts';
import { terminalText } from '../../kernel/terminal-text.ts';
import { writeDataset, type DatasetManifest, type DatasetSource } from '../../drivers/local/datasets/dataset-folder.ts';
import { openMarket } from '../../drivers/local/market/import.ts';
import type { SamplingPlan } from '../../market/dataset.ts';
import { percent, plural } from '../format.ts';
import { catalogueOption, day, line, number, printJson, stoppable } from './market.ts';
import type { DatasetFlags, MarketStreams } from '../flags/market-flags.ts';

export async function dataset(
  streams: MarketStreams,
  sources: readonly string[],
  options: DatasetFlags,
): Promise<void> {
  const plan = planOf(options);
  const progress = progressOf(streams);
  const target = resolve(options.output);
  let manifest: DatasetManifest;
  try {
    manifest = await stoppable(streams, `stopped: ${target} was not written`, async () =>
      writeDataset(target, await opened(sources, options, progress.show), plan, ({ source, rows }) =>
        progress.show(`sampling ${source}: ${number(rows)} rows`),
      ),
    );
  } finally {
    progress.clear();
  }
  if (options.json === true) printJson(streams, { path: target, ...manifest });
  else report(streams, target, manifest);
}

async function opened(
  sources: readonly string[],
  options: DatasetFlags,
  show: (text: string) => void,
): Promise<readonly DatasetSource[]> {
  const traces: DatasetSource[] = [];
  for (const source of sources) {
    show(`reading ${source}`);
    const path = resolve(source);
    const { trace } = await openMarket(path, resolve(options.cache), await catalogueOption(options.catalogue));
    traces.push({ name: basename(path), trace });
  }
  return traces;
}

function planOf(options: DatasetFlags): SamplingPlan {
  const { train, validation, unseen } = options;
  if (train + validation >= 1) {
    throw new EbbError('usage', {
      what: '--train and --validation leave no time to test on',
      got: `${train} and ${validation}`,
      allowed: 'together below 1',
    });
  }
  return {
    seed: options.seed,
    instants: options.instants,
    bidsPerInstant: options.bids,
    points: options.points,
    shares: { train, validation },
    unseenShare: unseen,
  };
}

/** Redraws one line on a terminal; writes nothing elsewhere. */
function progressOf({ stderr }: MarketStreams): { readonly show: (text: string) => void; readonly clear: () => void } {
  if (stderr.isTTY !== true) return { show: () => undefined, clear: () => undefined };
  return {
    show: (text) => void stderr.write(`\r\x1b[2K${terminalText(text)}`),
    clear: () => void stderr.write('\r\x1b[2K'),
  };
}

function report(streams: MarketStreams, path: string, manifest: DatasetManifest): void {
  line(streams, path);
  line(
    streams,
    `${number(manifest.rows)} bids in ${plural(manifest.pools.length, 'pool')}, seed ${manifest.plan.seed}`,
  );
  for (const source of manifest.sources) {
    const [from, validation, test, to] = [source.from, source.validationFrom, source.testFrom, source.to].map((iso) =>
      day(Date.parse(iso)),
    );
    line(streams, `\n${source.name}: ${from} to ${to} UTC, validation from ${validation}, test from ${test}`);
    for (const [split, rows] of Object.entries(source.rows)) {
      const lost = source.lostWithinHour[split as keyof typeof source.lostWithinHour];
      line(
        streams,
        `  ${split.padEnd(10)} ${number(rows)} bids${lost === null ? '' : `, ${percent(lost)} lost within an hour`}`,
      );
    }
    for (const [why, n] of Object.entries(source.leftOut)) line(streams, `  ${plural(n, 'instant')} left out: ${why}`);
  }
}
