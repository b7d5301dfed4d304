import { type Command, Option } from 'commander';
import { lazily, type World } from '../context.ts';
import { diskBytes, instantMs, path, port, positive, setting, vcpuCount, whole } from '../options.ts';
import type { RunOptions, UpOptions } from '../flags/engine-flags.ts';

/** Options without defaults: an engine that resumes takes missing ones from its directory. */
function engineOptions(command: Command): Command {
  return command
    .option(
      '--market <path>',
      'market to replay: a file or folder that `ebb market` wrote (default: a generated one)',
      path,
    )
    .option(
      '--cluster <machines>',
      'machines of your own, such as `256x{cpu: 4, memory: 16GiB, rack: 8}`: alone, or beside a --market (docs/cluster.md)',
    )
    .option('--from <time>', "where in the market to begin, ISO 8601 (default: the market's start)", instantMs)
    .option('--speed <n>', 'seconds of market time per second on the wall (default: 1)', positive)
    .option('--seed <n>', 'seed of everything random (default: 39)', whole)
    .option('--dir <path>', 'where jobs, history, logs and checkpoints are kept', path, '.ebb')
    .option('--preset <name>', 'which policies decide: see `ebb config --presets`')
    .option(
      '--vcpus <n>',
      'most vCPUs running at once, over all instances (default: 6 for each core, at least 12)',
      vcpuCount,
    )
    .option(
      '--disk <size>',
      'most that --dir may use, e.g. 20GB: full, it starts nothing more (default: what it uses and half of what is free)',
      diskBytes,
    )
    .option('--settings <file>', 'settings of the scheduler, and presets of your own, as YAML or JSON', path)
    .option('--set <key=value>', 'one setting of the scheduler, may be repeated: see `ebb config`', setting)
    .option(
      '--neighbours <file>',
      'what another engine has learned of programs that share machines, of `ebb neighbours export`: to begin with in a new --dir',
      path,
    );
}

/** Adds `run` and `up`. */
export function addRunning(program: Command, world: World, finish: (code: number) => void): void {
  engineOptions(
    program
      .command('run')
      .summary('run jobs here and now, on an engine of their own')
      .description(
        'Runs jobs on an engine inside this process until they are over: buys and releases (simulated) instances on a replayed market, runs the tasks as real processes, survives interruptions, and says what it cost.\n\nCtrl-C asks the tasks to save their state, gives the instances back and says how to go on. `ebb run --resume` then needs none of the other options again. So does a run that has used up its disk space (--disk), once there is room.',
      )
      .argument('[file...]', 'job and service files (YAML or JSON); with a service it runs until Ctrl-C'),
  )
    .option('--resume', 'go on with the unfinished jobs of --dir')
    .option('--dump-model <file>', "write the plan's optimisation model there (.lp or .mps), newest last", path)
    .option('--json', 'print the summary as JSON; progress goes to standard error')
    .addHelpText('after', '\nExample:\n  $ ebb run examples/hello.yaml --speed 60')
    .action(lazily<RunOptions>(world, finish, async () => (await import('../actions/run.ts')).run));

  engineOptions(
    program
      .command('up')
      .summary('run the engine as a service with an HTTP API')
      .description(
        'Runs the engine until it is stopped, with its API on loopback.\n\nEvery request must bear the engine’s token. It is made at the first start and kept in the file `token` of --dir, which only you can read; `ebb` finds it there. With curl: `-H "authorization: Bearer $(cat .ebb/token)"`. A token of your own comes from --token-file or EBB_TOKEN.\n\nStarted again on the same --dir it goes on with unfinished jobs, with the market, speed, seed, preset and settings that they were started with.\n\nIts folder may grow by half of the disk space that is free, or to --disk SIZE. It says so when 80 % are used. When all is used it starts no further task and takes no job until something is deleted; what runs goes on.',
      )
      .argument('[file...]', 'job and service files to begin with'),
  )
    .option('--bind <address>', 'address to listen on', '127.0.0.1')
    .addOption(new Option('--port <n>', 'port to listen on; 0 takes a free one').argParser(port).default(7788))
    .option('--no-token', 'let everybody on this machine submit jobs, which run as you, and cancel them; loopback only')
    .option('--tls-cert <file>', 'certificate (PEM): the API is served by HTTPS')
    .option('--tls-key <file>', 'private key of the certificate (PEM)')
    .option('--json', 'print where it listens as JSON')
    .addHelpText('after', '\nExample:\n  $ ebb up --speed 60 &\n  $ ebb submit examples/hello.yaml')
    .action(lazily<UpOptions>(world, finish, async () => (await import('../actions/up.ts')).up));
}
