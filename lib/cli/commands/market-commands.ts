import { Command, Option } from 'commander';
import type { Points } from '../../market/dataset.ts';
import { fromOne, instantMs, path, positive, share, whole } from '../options.ts';
import type { DatasetFlags, GenerateFlags, ImportFlags, MarketStreams, ShowFlags } from '../flags/market-flags.ts';

const actions = () => import('../actions/market.ts');
const collect = (text: string, before: readonly string[] = []): string[] => [...before, ...text.split(',')];

/** `ebb market`: options and texts only. The code of a subcommand and its libraries are loaded when it runs. */
export function marketCommand(
  streams: MarketStreams = { stdout: process.stdout, stderr: process.stderr, signals: process },
): Command {
  const market = new Command('market').description(
    'Spot markets for rehearsals: convert real traces, generate markets, show them.',
  );
  addImport(market, streams);
  addGenerate(market, streams);
  addShow(market, streams);
  addDataset(market, streams);
  market
    .command('formats')
    .alias('convert')
    .summary('what `market import` reads, and how to get it')
    .description(
      'Lists the formats that `ebb market import` converts, how each is recognised and where such data comes from.',
    )
    .option('--json', 'print as JSON')
    .addHelpText('after', '\nExample:\n  $ ebb market formats')
    .action(async (options: { json?: boolean }) => (await actions()).formats(streams, options));
  return market;
}

function addImport(market: Command, streams: MarketStreams): void {
  market
    .command('import')
    .summary('convert price histories or availability series into a market file')
    .description(
      'Converts a file or a folder (price CSV, AWS describe-spot-price-history JSON, spot availability JSON; each also gzipped) into one market file. Lines that cannot be used are reported, counted and left out.',
    )
    .argument('<source>', 'file or folder')
    .option('-o, --output <file>', 'market file to write (default: SOURCE.ebbmarket in the working directory)', path)
    .option('--name <name>', 'name of the market (default: the name of the source)')
    .option('--catalogue <csv>', 'shapes and on-demand prices to use before the built-in ones')
    .option('--max-issues <n>', 'bad lines to print one by one', whole, 20)
    .option('--json', 'print the summary as JSON')
    .addHelpText(
      'after',
      '\nExamples:\n  $ aws ec2 describe-spot-price-history --product-descriptions Linux/UNIX > history.json\n  $ ebb market import history.json -o history.ebbmarket\n  $ ebb run job.yaml --market history.ebbmarket --speed 600',
    )
    .action(async (source: string, options: ImportFlags) => (await actions()).importSource(streams, source, options));
}

function addGenerate(market: Command, streams: MarketStreams): void {
  market
    .command('generate')
    .summary('write a market from the seeded generator')
    .description(
      'Writes a generated market: the same options give the same market. Without any it is the one that Ebbtide uses when no market is named.',
    )
    .requiredOption('-o, --output <file>', 'market file to write', path)
    .option('--seed <n>', 'seed', whole)
    .option('--days <n>', 'length in days', positive)
    .option('--start <time>', 'first instant, ISO 8601', instantMs)
    .option('--zones <list>', 'zones, separated by commas', collect)
    .option('--types <list>', 'instance types, separated by commas', collect)
    .option('--regime <regime>', 'spiky (before November 2017), smooth (since) or mixed', 'mixed')
    .option('--temper <temper>', 'natural: as often turbulent as real pools; turbulent: active pools only', 'turbulent')
    .option('--json', 'print the summary as JSON')
    .addHelpText(
      'after',
      '\nExamples:\n  $ ebb market generate -o market.ebbmarket --seed 7\n  $ ebb market generate -o smooth.ebbmarket --regime smooth --days 30 --types m5.large,c5.xlarge --zones us-east-1a,us-east-1b',
    )
    .action(async (options: GenerateFlags) => (await actions()).generate(streams, options));
}

function addShow(market: Command, streams: MarketStreams): void {
  market
    .command('show')
    .summary('table and chart of a market')
    .description(
      'Shows pools of a market: prices, the on-demand line, interruptions and times without capacity; as text, or as a chart in an SVG or HTML file.',
    )
    .argument('[market]', 'market file, or raw data as for `import` (default: the generated market)')
    .option('--pool <pattern>', 'only pools whose TYPE/ZONE contains this; may be repeated', collect)
    .option('--from <time>', 'first instant, ISO 8601', instantMs)
    .option('--to <time>', 'last instant, ISO 8601', instantMs)
    .option('--charts <n>', 'pools to draw, the most turbulent first', whole, 3)
    .option('--svg <file>', 'write the chart as SVG', path)
    .option('--html <file>', 'write the chart as a page that needs nothing else', path)
    .option('--catalogue <csv>', 'shapes and on-demand prices to use for raw data')
    .option('--cache <dir>', 'where raw data is kept once converted', '.ebb/markets')
    .option('--json', 'print the table as JSON')
    .addHelpText(
      'after',
      '\nExamples:\n  $ ebb market show\n  $ ebb market show history.ebbmarket --pool m5.large --from 2016-04-01 --to 2016-04-08\n  $ ebb market show --pool c5.xlarge --html market.html',
    )
    .action(async (source: string | undefined, _options: unknown, command: Command) =>
      (await actions()).show(streams, source, command.optsWithGlobals<ShowFlags>()),
    );
}

function addDataset(market: Command, streams: MarketStreams): void {
  market
    .command('dataset')
    .summary('draw hypothetical bids from price histories, to train a forecast on')
    .description(
      'Draws bids at random instants of price histories and writes, for each, the features of that instant and how long the bid would have lived. Bids lie 0.00001 to 0.2 USD per hour above the price (Tributary), one in four near the on-demand price. The first part of the time trains, the next validates, the last tests; some pools are held out altogether. The same sources and options give the same folder.',
    )
    .argument('<sources...>', 'market files, or raw data as for `import`')
    .requiredOption('-o, --output <folder>', 'folder to write: a NumPy file per column, and manifest.json')
    .option('--seed <n>', 'seed', whole, 1)
    .option('--instants <n>', 'random instants per source, as many in each of its pools', fromOne, 50_000)
    .option('--bids <n>', 'bids at each instant', fromOne, 4)
    .addOption(
      new Option(
        '--points <points>',
        'what instants are drawn from, evenly: times, or the prices that were published, which asks most about pools that change often',
      )
        .choices(['times', 'prices'] satisfies Points[])
        .default('times'),
    )
    .option('--train <share>', 'share of the time to train on', share, 0.6)
    .option('--validation <share>', 'share of the time, after that, to validate on', share, 0.2)
    .option('--unseen <share>', 'share of the pools to hold out', share, 0.15)
    .option('--catalogue <csv>', 'shapes and on-demand prices to use for raw data')
    .option('--cache <dir>', 'where raw data is kept once converted', '.ebb/markets')
    .option('--json', 'print the manifest as JSON')
    .addHelpText(
      'after',
      "\nExamples:\n  $ ebb market dataset history.ebbmarket -o dataset\n  $ ebb market dataset 2016.ebbmarket 2021.ebbmarket -o dataset --instants 20000 --seed 7\n\nColumns: features (one column per name in the manifest), lossS (seconds until the price\npasses the bid; infinity where it did not), watchedS (how long the bid was watched, a day at\nmost: a loss within h is unknown where neither is at least h), atMs, bidUsd, pool, source, split, bidKind.\nIn Python: numpy.load('dataset/features.npy', mmap_mode='r').",
    )
    .action(async (sources: string[], _options: unknown, command: Command) =>
      (await import('../actions/dataset.ts')).dataset(streams, sources, command.optsWithGlobals<DatasetFlags>()),
    );
}
