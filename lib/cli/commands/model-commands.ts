import { Option, type Command } from 'commander';
import { lazily, type World } from '../context.ts';
import { fromOne, path, whole } from '../options.ts';
import type {
  DirOptions,
  EvaluateOptions,
  ListOptions,
  ShowOptions,
  TrainOptions,
  UseOptions,
} from '../flags/model-flags.ts';

const actions = () => import('../actions/models.ts');

/** Adds `models`: trained forecasts of price losses and their versions. */
export function addModels(program: Command, world: World, finish: (code: number) => void): void {
  const models = program
    .command('models')
    .summary('trained forecasts: list, judge, train and choose versions')
    .description(
      'Versions of the trained model that forecasts how likely a bid is lost. Some came with the program; an engine’s directory can have its own, trained on its own market. `ebb up --set forecast=model` (also `run` and `simulate`) asks the version in use. With --risk capacity: versions of the model that forecasts how likely capacity ends, which `--set capacityForecast=model` asks; none of these came with the program.',
    );
  addLooking(models, world, finish);
  addJudging(models, world, finish);
  addTraining(models, world, finish);
  addChoosing(models, world, finish);
}

/** Adds the common option: the directory with versions, history and choices. */
export const ofDirectory = (command: Command): Command =>
  command
    .option('--dir <path>', 'directory of the engine: its versions, its choices, its market', path, '.ebb')
    .addOption(
      new Option('--risk <risk>', 'what the versions forecast: that the price passes a bid, or that capacity ends')
        .choices(['price', 'capacity'])
        .default('price'),
    )
    .option('--json', 'print as JSON');

function addLooking(models: Command, world: World, finish: (code: number) => void): void {
  ofDirectory(
    models
      .command('list')
      .summary('versions, what they were trained on and how good they are')
      .description(
        'Lists the versions that came with the program and those of the directory, with the figures that each was found to have on its held-out range (lost within the hour; 95 % intervals with `show`).',
      ),
  )
    .addHelpText('after', '\nExample:\n  $ ebb models list')
    .action(lazily<ListOptions>(world, finish, async () => (await actions()).list));

  ofDirectory(
    models
      .command('show')
      .summary('one version: where it comes from, whether it is whole, how good it is')
      .description(
        'Shows a version: what it was trained on, its horizons and features, its figures; checks the hash of its file and that it answers here what it answered where it was trained. Then drift: how many interruptions were forecast of the spot instances that it was used to buy, and how many came, per pool and in all; with --risk capacity those for want of capacity.',
      )
      .argument('[version]', 'version (default: the one in use)'),
  )
    .addHelpText('after', '\nExamples:\n  $ ebb models show\n  $ ebb models show 2026-11-21-trees --json')
    .action(lazily<ShowOptions>(world, finish, async () => (await actions()).show));
}

const collect = (text: string, before: readonly string[] = []): string[] => [...before, ...text.split(',')];

const drawn = (command: Command, usual: string): Command =>
  command
    .option(
      '--markets <list>',
      'price histories, or series of availability (--risk capacity), instead of what the engine of --dir has seen: market files, or raw data as for `market import`; separated by commas',
      collect,
    )
    .option('--catalogue <csv>', 'shapes and on-demand prices to use for raw data')
    .addOption(
      new Option('--instants <n>', `random instants per market, of capacity per pool (default: ${usual})`).argParser(
        fromOne,
      ),
    )
    .addOption(new Option('--seed <n>', 'seed').argParser(whole).default(1));

function addJudging(models: Command, world: World, finish: (code: number) => void): void {
  drawn(
    ofDirectory(
      models
        .command('evaluate')
        .summary('judge a version on the latest prices, against the one in use and history')
        .description(
          'Draws hypothetical bids from the last quarter of the prices, at instants that no judged version has seen in training, and shows how well each forecast tells which were lost within the hour. Then, paired by days, by how much its Brier score over all horizons differs from that of the version in use and of history. Nothing is changed by it.',
        )
        .argument('[version]', 'version, or a folder with model.onnx (default: the one in use)'),
    ),
    '20000, 3000',
  )
    .addHelpText(
      'after',
      '\nExamples:\n  $ ebb models evaluate\n  $ ebb models evaluate 2026-11-21-lstm --markets history.ebbmarket',
    )
    .action(lazily<EvaluateOptions>(world, finish, async () => (await import('../actions/models-judged.ts')).evaluate));
}

function addTraining(models: Command, world: World, finish: (code: number) => void): void {
  drawn(
    ofDirectory(
      models
        .command('train')
        .summary('train a version on the deployment’s own prices, and take it if it is better')
        .description(
          'Trains a new version on the prices that the engine of --dir has seen, or on --markets: on the first 60 % of the time, calibrated on the next 15 %. On the rest, at instants that neither has seen, it is judged beside the version in use. It is taken only if it is better: if the 95 % interval of the paired difference of their Brier scores over all horizons, by days, lies below 0. Otherwise the version in use stays; the new one is kept and can be chosen by hand.\n\nIt takes at least 28 days of prices, ONNX Runtime (`npm install onnxruntime-node`) and Python 3.11 or newer; the first time pinned packages with checked hashes are installed in the user’s cache (0.7 GB). With --risk capacity it trains on what the engine’s own instances tell, at least 28 days in which capacity that was held ended 60 times: of that of --dir, or of the engine or deployment that --url or --stack names; or on the series of availability in --markets, at least 26 days in all; where no version is in use it must be better than observed interruptions.',
        ),
    ),
    '50000, 3000',
  )
    .addOption(
      new Option('--model <kind>', 'boosted trees, or the network of the paper')
        .choices(['trees', 'lstm'])
        .default('trees'),
    )
    .option('--name <version>', 'name of the new version (default: the date and the kind)')
    .option('--python <path>', 'a Python that has the packages of models/training/preemption/requirements.txt already')
    .addHelpText(
      'after',
      '\nExamples:\n  $ ebb models train\n  $ ebb market import history.json -o history.ebbmarket\n  $ ebb models train --markets history.ebbmarket --dir deployment\n  $ ebb models train --risk capacity --markets spot-traces/aws-10-26-2022\n  $ ebb models train --risk capacity --stack Ebbtide',
    )
    .action(lazily<TrainOptions>(world, finish, async () => (await import('../actions/models-judged.ts')).train));
}

function addChoosing(models: Command, world: World, finish: (code: number) => void): void {
  ofDirectory(
    models
      .command('use')
      .summary('choose which version `forecast=model` means, or take the last choice back')
      .description(
        'Records which version `--set forecast=model` means in this directory from now on. A running engine takes it up with its next decision. With --rollback the choice before is in force again; before the first one it is the newest version that came with the program.',
      )
      .argument('[version]', 'version to use'),
  )
    .option('--rollback', 'take the last choice back')
    .option('--why <text>', 'reason, kept with the choice')
    .addHelpText(
      'after',
      '\nExamples:\n  $ ebb models use 2026-11-21-trees --why "better on our pools"\n  $ ebb models use --rollback\n  $ ebb models history',
    )
    .action(lazily<UseOptions>(world, finish, async () => (await actions()).use));

  ofDirectory(
    models
      .command('history')
      .summary('which versions were chosen, when, by whom and why')
      .description('Lists every choice of a version in the directory, rollbacks included, newest last.'),
  )
    .addHelpText('after', '\nExample:\n  $ ebb models history --json')
    .action(lazily<DirOptions>(world, finish, async () => (await actions()).history));
}
