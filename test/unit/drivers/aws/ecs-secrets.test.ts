import { describe, expect, it } from '@jest/globals';
import type { ECSClient } from '@aws-sdk/client-ecs';
import { Ecs } from '../../../../lib/drivers/aws/fleet/ecs.ts';
import { endMeaning } from '../../../../lib/drivers/aws/fleet/stop-reasons.ts';
import { attemptId, effectKey, instanceId } from '../../../../lib/kernel/ids.ts';
import type { StartRequest } from '../../../../lib/ports/fleet.ts';
import { resources } from '../../../support/builders.ts';

interface Sent {
  readonly name: string;
  readonly input: Readonly<Record<string, unknown>>;
}

function ecs(): { readonly ecs: Ecs; readonly sent: Sent[] } {
  const sent: Sent[] = [];
  const send = async (command: { readonly input: Sent['input'] }): Promise<unknown> => {
    const { name } = command.constructor;
    sent.push({ name, input: command.input });
    if (name === 'DescribeTaskDefinitionCommand') throw Object.assign(new Error('none'), { name: 'ClientException' });
    return name === 'RunTaskCommand' ? { tasks: [{ taskArn: 'arn:task' }] } : {};
  };
  const client = { send } as unknown as ECSClient;
  return {
    sent,
    ecs: new Ecs({
      client,
      cluster: 'c',
      stack: 'night',
      region: 'eu-central-1',
      image: 'i',
      logGroup: 'g',
      executionRole: 'arn:aws:iam::111122223333:role/execution',
      taskRole: 'arn:aws:iam::111122223333:role/task',
      bucket: 'b',
      speed: 1,
      checkpointDir: () => '/ebb/checkpoint',
    }),
  };
}

const order = (secrets?: Readonly<Record<string, string>>): StartRequest => ({
  key: effectKey('e'),
  attempt: attemptId('j.main.0.1'),
  instance: instanceId('i-1'),
  command: ['true'],
  env: {},
  ...(secrets === undefined ? {} : { secrets }),
  workdir: '',
  inputs: [],
  outputs: [],
  resources: resources(),
  timeoutS: null,
  checkpoint: null,
  task: { job: 'j', stage: 'main', index: 0, number: 1 },
});

describe('secrets on AWS', () => {
  it('are named by the task definition, below the prefix of the deployment, and are in no override', async () => {
    const { ecs: calls, sent } = ecs();
    await calls.start(order({ B: 'ssm:api-token', A: 'db-password' }), 'i-0', 0);
    const defined = sent.find((s) => s.name === 'RegisterTaskDefinitionCommand')?.input;
    expect(defined).toMatchObject({
      containerDefinitions: [
        {
          secrets: [
            {
              name: 'A',
              valueFrom: 'arn:aws:secretsmanager:eu-central-1:111122223333:secret:ebbtide/night/db-password',
            },
            { name: 'B', valueFrom: 'arn:aws:ssm:eu-central-1:111122223333:parameter/ebbtide/night/api-token' },
          ],
        },
      ],
    });
    const run = sent.find((s) => s.name === 'RunTaskCommand')?.input;
    expect(JSON.stringify(run?.['overrides'])).not.toMatch(/db-password|api-token/);
    expect(run?.['taskDefinition']).toBe(defined?.['family']);
  });

  it('make a definition of their own; jobs without secrets keep theirs', async () => {
    const { ecs: calls, sent } = ecs();
    for (const secrets of [undefined, {}, { A: 'one' }, { A: 'two' }]) await calls.start(order(secrets), 'i-0', 0);
    const families = sent.filter((s) => s.name === 'RunTaskCommand').map((s) => s.input['taskDefinition']);
    expect(families[1]).toBe(families[0]);
    expect(new Set(families).size).toBe(3);
  });

  it('that are missing are said to be', () => {
    const stoppedReason =
      'ResourceInitializationError: unable to pull secrets or registry auth: execution resource retrieval failed: unable to retrieve secret from asm';
    expect(endMeaning({ stopCode: 'TaskFailedToStart', stoppedReason }).detail).toMatch(
      /a secret that the job names is missing/,
    );
  });
});
