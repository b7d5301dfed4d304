/** The two stacks of this repository's app: data, which stays, and everything else, which is replaceable. */
import { CfnOutput, Fn, Stack, type Environment, type StackProps } from 'aws-cdk-lib';
import type { Construct } from 'constructs';
import { CONSTRUCT_ID, mainStackName } from '../drivers/aws/compose/stack-outputs.ts';
import { acknowledge } from './acknowledged.ts';
import { historyDaysOf, type DeploymentConfig } from './config.ts';
import { EbbtideData } from './data.ts';
import { Ebbtide } from './ebbtide.ts';

export interface EbbtideStacks {
  readonly data: EbbtideDataStack;
  readonly main: EbbtideStack;
}

/** Stacks `EbbtideData` and `Ebbtide`; with another `name` in the configuration, that name and `-data`. */
export function ebbtideStacks(app: Construct, config: DeploymentConfig): EbbtideStacks {
  const env = environmentOf(config);
  const isDefault = config.name === 'ebbtide';
  const data = new EbbtideDataStack(app, isDefault ? 'EbbtideData' : `${config.name}-data`, {
    env,
    config,
    description: 'Ebbtide: table and bucket. Stays when the other stack goes.',
  });
  const main = new EbbtideStack(app, mainStackName(config.name), {
    env,
    config,
    data: data.data,
    description: 'Ebbtide: API, functions, cycle, cluster. Replaceable: its only data is the output of tasks.',
  });
  return { data, main };
}

function environmentOf({ account, region }: DeploymentConfig): Environment {
  return { ...(account === undefined ? {} : { account }), ...(region === undefined ? {} : { region }) };
}

export interface EbbtideDataStackProps extends StackProps {
  readonly config: DeploymentConfig;
}

export class EbbtideDataStack extends Stack {
  readonly data: EbbtideData;

  constructor(scope: Construct, id: string, { config, ...props }: EbbtideDataStackProps) {
    super(scope, id, props);
    this.data = new EbbtideData(this, 'Data', {
      keepData: config.keepData,
      historyDays: historyDaysOf(config),
      ...(config.restoredTable === undefined ? {} : { restoredTable: config.restoredTable }),
    });
    new CfnOutput(this, 'TableName', { value: this.data.table.tableName });
    new CfnOutput(this, 'BucketName', { value: this.data.bucket.bucketName });
  }
}

export interface EbbtideStackProps extends EbbtideDataStackProps {
  readonly data: EbbtideData;
}

export class EbbtideStack extends Stack {
  readonly ebbtide: Ebbtide;
  readonly #zones: number;

  constructor(scope: Construct, id: string, { config, data, ...props }: EbbtideStackProps) {
    super(scope, id, props);
    this.#zones = config.zones;
    acknowledge(this, {
      'CloudFormation-Validate::E1022':
        'Fn::Join takes what Fn::GetAZs gives (CloudFormation Template Reference, "Fn::Join", supported functions); the check does not know it.',
    });
    const { account: _, region: __, ...given } = config;
    this.ebbtide = new Ebbtide(this, CONSTRUCT_ID, { ...given, data });
  }

  /**
   * First zones of the region, by reference. So synthesis needs no look-up, no credentials and no account in
   * cdk.context.json. If the account has fewer (Fn::GetAZs returns only those with a default subnet), numbering
   * restarts at the first. A second subnet in a zone is useless but free.
   */
  override get availabilityZones(): string[] {
    const zones = Fn.join(',', Fn.getAzs());
    const enough = Fn.split(',', Fn.join(',', new Array<string>(this.#zones).fill(zones)));
    return Array.from({ length: this.#zones }, (_, n) => Fn.select(n, enough));
  }
}
