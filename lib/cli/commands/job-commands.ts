import { type Command, Option } from 'commander';
import { lazily, type World } from '../context.ts';
import { whole } from '../options.ts';
import type { JobsOptions, LogsOptions, StatusOptions, SubmitOptions } from '../flags/job-flags.ts';

/** Adds commands on the jobs of a running engine: submit, jobs, status, watch, logs, cancel, release, explain. */
export function addJobs(program: Command, world: World, finish: (code: number) => void): void {
  addSubmit(program, world, finish);
  addQuestions(program, world, finish);
  addLogs(program, world, finish);
  addChanges(program, world, finish);
  addExplain(program, world, finish);
}

function addSubmit(program: Command, world: World, finish: (code: number) => void): void {
  program
    .command('submit')
    .summary('hand job files to a running engine')
    .description(
      'Hands job files to a running engine. What cannot work is refused at once, with the reason. Several jobs are sent in batches. All files are read first: nothing is sent when one of them has a fault. A job that the engine refuses does not hold up the others; then the exit code is that of the first refusal.',
    )
    .argument(
      '<file...>',
      'job files: YAML (several jobs with `---` between them), JSON, or a job in JSON on each line (.ndjson, .jsonl); - reads standard input',
    )
    .option(
      '--key <text>',
      'idempotency key: the same key with the same files makes each job once however often they are sent',
    )
    .option('--keep-going', 'submit the other jobs when some cannot be read or have faults')
    .option('--json', 'print the answers as JSON')
    .addHelpText('after', '\nExample:\n  $ ebb submit examples/hello.yaml\n  $ ebb submit jobs/*.yaml')
    .action(lazily<SubmitOptions>(world, finish, async () => (await import('../actions/submit.ts')).submit));
}

function addQuestions(program: Command, world: World, finish: (code: number) => void): void {
  program
    .command('jobs')
    .summary('list jobs, newest first')
    .description('Lists jobs, newest first.')
    .addOption(
      new Option('--state <state...>', 'only jobs in these states').choices([
        'pending',
        'running',
        'held',
        'succeeded',
        'failed',
        'cancelled',
      ]),
    )
    .option('--owner <name>', 'only jobs of this owner')
    .option('--name <name>', 'only jobs of this name')
    .option('--label <key=value>', 'only jobs that carry this label')
    .addOption(new Option('--limit <n>', 'at most this many').argParser(whole).default(50))
    .option('--json', 'print as JSON')
    .addHelpText('after', '\nExample:\n  $ ebb jobs --state running pending')
    .action(lazily<JobsOptions>(world, finish, async () => (await import('../actions/jobs.ts')).jobs));

  program
    .command('status')
    .summary('show one job: stages, deadline, cost')
    .description('Shows one job: its stages, its deadline, what it has cost, why it is where it is.')
    .argument('<job>', 'id or name')
    .option('--tasks', 'also list the tasks that have been tried')
    .option('--json', 'print as JSON')
    .addHelpText('after', '\nExample:\n  $ ebb status nightly-render')
    .action(lazily<StatusOptions>(world, finish, async () => (await import('../actions/jobs.ts')).status));

  program
    .command('watch')
    .summary('follow one job, or everything, live')
    .description('Follows one job until it is over, or everything until Ctrl-C. Stopping to watch stops nothing else.')
    .argument('[job]', 'id or name')
    .option('--json', 'print events as JSON, one per line')
    .addHelpText('after', '\nExample:\n  $ ebb watch nightly-render')
    .action(lazily<object>(world, finish, async () => (await import('../actions/watch.ts')).watch));
}

function addLogs(program: Command, world: World, finish: (code: number) => void): void {
  program
    .command('logs')
    .summary("print a task's output")
    .description(
      'Prints what a task wrote: of the attempt that succeeded, else of its newest, unless another is named. On a terminal colours are left out and control characters are shown; a file or a pipe (`| less -R`) gets them as written.',
    )
    .argument('<job>', 'id or name')
    .addOption(new Option('--task <n>', 'index of the task').argParser(whole).default(0))
    .option('--stage <name>', 'stage of the task (needed when the job has several)')
    .addOption(
      new Option('--attempt <n>', 'number of the attempt (default: the one that succeeded, else the newest)').argParser(
        whole,
      ),
    )
    .option('--stderr', 'standard error instead of standard output')
    .option('-f, --follow', 'follow the task until it is over, through later attempts')
    .option('--json', 'print as JSON')
    .addHelpText('after', '\nExample:\n  $ ebb logs nightly-render --stage frames --task 7 --follow')
    .action(lazily<LogsOptions>(world, finish, async () => (await import('../actions/logs.ts')).logs));
}

function addChanges(program: Command, world: World, finish: (code: number) => void): void {
  program
    .command('cancel')
    .summary('stop a job')
    .description('Stops a job: its running tasks are stopped, the others never start. Finished tasks stay finished.')
    .argument('<job>', 'id or name')
    .option('--json', 'print as JSON')
    .addHelpText('after', '\nExample:\n  $ ebb cancel nightly-render')
    .action(lazily<object>(world, finish, async () => (await import('../actions/jobs.ts')).cancel));

  program
    .command('release')
    .summary('let a held job be decided on again')
    .description(
      'Releases a held job for a new decision. The scheduler holds a job on which a decision fails, so that all others go on; `ebb status` shows why. If it fails again, the job is held again.',
    )
    .argument('<job>', 'id or name')
    .option('--json', 'print as JSON')
    .addHelpText('after', '\nExample:\n  $ ebb release nightly-render')
    .action(lazily<object>(world, finish, async () => (await import('../actions/jobs.ts')).release));
}

function addExplain(program: Command, world: World, finish: (code: number) => void): void {
  program
    .command('explain')
    .summary('why a job waits, or runs where it runs')
    .description(
      'Says why a job waits and what would change it, or why it runs where it runs: the pools considered, with price, probability of interruption and lateness, expected cost and verdict.',
    )
    .argument('<job>', 'id or name')
    .option('--json', 'print as JSON')
    .addHelpText('after', '\nExample:\n  $ ebb explain nightly-render')
    .action(lazily<object>(world, finish, async () => (await import('../actions/jobs.ts')).explain));
}
