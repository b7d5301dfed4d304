/**
 * Outputs of the stack, for people and for the command line (lib/cli/deployment.ts), which finds the address by its
 * description. The first Ebbtide of a stack has plain names, unless the stack's own outputs use them. Names of further
 * ones are generated.
 */
import { AspectPriority, Aspects, Aws, CfnCondition, CfnOutput, Fn, Lazy, Stack } from 'aws-cdk-lib';
import { Construct } from 'constructs';
import { OTHER_CONSOLES } from '../drivers/aws/fleet/log-place.ts';
import { API_URL_DESCRIPTION } from '../drivers/aws/compose/stack-outputs.ts';
import type { HttpApi } from './api.ts';
import type { Cycle } from './cycle.ts';
import type { TriggerQueue } from './triggers.ts';

export interface OutputsProps {
  readonly name: string;
  readonly api: HttpApi;
  readonly cycle: Cycle;
  readonly trigger: TriggerQueue;
}

export class EbbtideOutputs extends Construct {
  constructor(scope: Construct, id: string, { name, api, cycle, trigger }: OutputsProps) {
    super(scope, id);
    const { region, stackName } = Stack.of(this);
    const outputs: Readonly<Record<string, string>> = {
      ApiUrl: api.rest.url,
      Dashboard: `https://${this.#console(region)}/cloudwatch/home?region=${region}#dashboards/dashboard/${name}`,
      CycleArn: cycle.machine.stateMachineArn,
      TriggerDeadLetters: trigger.deadLetters.queueUrl,
      TriggerDeadLettersArn: trigger.deadLetters.queueArn,
      TriggerQueueArn: trigger.queue.queueArn,
      Try: Lazy.string({
        produce: () => `ebb --stack ${stackName}${this.#isAlone() ? '' : ` --url ${api.rest.url}`} jobs`,
      }),
    };
    const made = Object.entries(outputs).map(
      ([key, value]) =>
        new CfnOutput(this, key, { value, ...(key === 'ApiUrl' ? { description: API_URL_DESCRIPTION } : {}) }),
    );
    if (!this.#isAlone()) return;
    // Aspects run last: the stack's own outputs may be made after this construct.
    const visit = (node: unknown): void => {
      if (node === this) this.#takePlainNames(made);
    };
    Aspects.of(this).add({ visit }, { priority: AspectPriority.MUTATING });
  }

  #takePlainNames(made: readonly CfnOutput[]): void {
    const stack = Stack.of(this);
    const others = stack.node.findAll().filter((c) => c instanceof CfnOutput && !made.includes(c) && c.stack === stack);
    const taken = new Set(others.map((c) => stack.resolve((c as CfnOutput).logicalId) as string));
    for (const output of made) if (!taken.has(output.node.id)) output.overrideLogicalId(output.node.id);
  }

  /** True if the stack has no other Ebbtide so far. */
  #isAlone(): boolean {
    const stack = Stack.of(this);
    const all = stack.node.findAll().filter((c) => c instanceof EbbtideOutputs && Stack.of(c) === stack);
    return all.length === 1;
  }

  /** Host of the console, known only at deployment. */
  #console(region: string): string {
    return OTHER_CONSOLES.reduce<string>((otherwise, { partition, host }) => {
      const expression = Fn.conditionEquals(Aws.PARTITION, partition);
      const isThere = new CfnCondition(this, `Is${partition.replaceAll('-', '')}`, { expression });
      return Fn.conditionIf(isThere.logicalId, host, otherwise).toString();
    }, `${region}.console.aws.amazon.com`);
  }
}
