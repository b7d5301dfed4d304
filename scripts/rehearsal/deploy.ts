/** The plain CDK command line against LocalStack: bootstrap, synthesis and deployment of this repository's app. */
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { rehearsed, type Changes, type Template } from './template.ts';

const CDK = join('node_modules', 'aws-cdk', 'bin', 'cdk');
const APP = `${process.execPath} --disable-warning=ExperimentalWarning bin/app.ts`;
/** Account of LocalStack. */
export const ACCOUNT = '000000000000';
export interface Target {
  /** Endpoint of LocalStack. */
  readonly endpoint: string;
  readonly region: string;
  /** Folder for everything that the CDK writes. */
  readonly folder: string;
  /** Ends the current command of the CDK. */
  readonly signal?: AbortSignal;
}

export type Outputs = Readonly<Record<string, Readonly<Record<string, string>>>>;

/** Variables with which SDKs and tools of AWS reach a LocalStack and no account of this machine's user. */
export const awsEnvironment = ({ endpoint, region }: Pick<Target, 'endpoint' | 'region'>): Record<string, string> => ({
  AWS_ENDPOINT_URL: endpoint,
  AWS_REGION: region,
  AWS_DEFAULT_REGION: region,
  AWS_ACCESS_KEY_ID: 'test',
  AWS_SECRET_ACCESS_KEY: 'test',
  AWS_CONFIG_FILE: '/dev/null',
  AWS_SHARED_CREDENTIALS_FILE: '/dev/null',
  AWS_EC2_METADATA_DISABLED: 'true',
});

async function cdk(target: Target, args: readonly string[]): Promise<void> {
  const kept = Object.entries(process.env).filter(([name]) => !/^(AWS_|CDK_|EBB_)/.test(name));
  const env = {
    ...Object.fromEntries(kept),
    ...awsEnvironment(target),
    CI: 'true',
    CDK_HOME: join(target.folder, 'cdk'),
    CDK_DISABLE_CLI_TELEMETRY: 'true',
  };
  try {
    const { signal } = target;
    await promisify(execFile)(process.execPath, [CDK, ...args], { env, maxBuffer: 2 ** 26, ...(signal && { signal }) });
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
    const said = `${stdout}${stderr}`.split('\n').filter((line) => line.trim() !== '');
    throw new Error(`cdk ${args[0] ?? ''} failed\n${said.slice(-25).join('\n')}`, { cause: error });
  }
}

export const bootstrap = (target: Target): Promise<void> =>
  cdk(target, ['bootstrap', `aws://${ACCOUNT}/${target.region}`, '--app', '']);

/** App that is synthesised and not yet deployed. */
export class Assembly {
  readonly #target: Target;
  readonly #file: string;

  private constructor(target: Target, stack: string) {
    this.#target = target;
    this.#file = join(folderIn(target), `${stack}.template.json`);
  }

  /** Synthesises the app with a configuration file. `stack`: the stack that a rehearsal changes. */
  static async of(target: Target, config: object, stack: string): Promise<Assembly> {
    const file = join(target.folder, 'ebbtide.config.yaml');
    // JSON is valid YAML.
    writeFileSync(file, JSON.stringify(config));
    const output = ['--output', folderIn(target), '--context', `ebbtide:config=${file}`];
    await cdk(target, ['synth', '--quiet', '--app', APP, ...output]);
    return new Assembly(target, stack);
  }

  get template(): Template {
    return JSON.parse(readFileSync(this.#file, 'utf8')) as Template;
  }

  /** Deploys both stacks, with the changes for LocalStack and the rehearsal. */
  async deploy(changes: Changes): Promise<Outputs> {
    writeFileSync(this.#file, JSON.stringify(rehearsed(this.template, changes)));
    const outputs = join(this.#target.folder, 'outputs.json');
    await cdk(this.#target, [
      ...['deploy', '--all', '--app', folderIn(this.#target), '--require-approval', 'never', '--method', 'direct'],
      ...['--outputs-file', outputs],
    ]);
    return JSON.parse(readFileSync(outputs, 'utf8')) as Outputs;
  }
}

const folderIn = ({ folder }: Target): string => join(folder, 'cdk.out');
