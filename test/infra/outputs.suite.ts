/** What a stack says of the deployments in it, in an app of somebody else. */
import { beforeAll, describe, expect, it } from '@jest/globals';
import { CfnOutput, Stack } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import { API_URL_DESCRIPTION } from '../../lib/drivers/aws/compose/stack-outputs.ts';
import { Ebbtide } from '../../lib/infra/ebbtide.ts';
import { newApp, synthesis } from './synthesis.ts';

type Outputs = Readonly<Record<string, { readonly Value: unknown }>>;
const outputsOf = (template: Template): Outputs => template.findOutputs('*') as Outputs;

describe('the outputs', () => {
  let outputs: Outputs;
  let plain: readonly string[];
  beforeAll(() => {
    const stack = new Stack(newApp(), 'Own');
    new Ebbtide(stack, 'Day');
    new Ebbtide(stack, 'Night', { name: 'night' });
    outputs = outputsOf(Template.fromStack(stack));
    plain = Object.keys(outputsOf(synthesis().main)).sort();
  });
  const written = (key: string): string => JSON.stringify(outputs[key]?.Value);
  const nightly = (name: string): string => {
    const keys = Object.keys(outputs).filter((key) => new RegExp(`^NightOutputs${name}[\\dA-F]{8}$`).test(key));
    expect(keys).toHaveLength(1);
    return keys[0] ?? '';
  };

  it('have the same names in any stack', () => {
    expect(plain).toContain('ApiUrl');
    expect(
      Object.keys(outputs)
        .filter((key) => !key.startsWith('Night'))
        .sort(),
    ).toEqual(plain);
    for (const key of plain.filter((each) => each !== 'Try')) expect(written(key)).not.toMatch(/night/i);
  });

  it('are all there for a second deployment of the stack, under names of its own', () => {
    expect(Object.keys(outputs)).toHaveLength(2 * plain.length);
    for (const name of plain) expect(written(nightly(name))).toMatch(/night/i);
    expect(written(nightly('ApiUrl'))).toContain('"NightHttpRest');
  });

  it('say how to ask, by its address where the stack has several', () => {
    expect(outputsOf(synthesis().main)['Try']?.Value).toBe('ebb --stack Ebbtide jobs');
    expect(written('Try')).toMatch(/ebb --stack Own --url .*"DayHttpRest/);
    expect(written(nightly('Try'))).toMatch(/ebb --stack Own --url .*"NightHttpRest/);
  });

  it('leave the names to outputs of the stack’s own, whichever were there first', () => {
    const stack = new Stack(newApp(), 'Shared');
    new CfnOutput(stack, 'ApiUrl', { value: 'https://api.example.com' });
    new Ebbtide(stack, 'Day');
    new CfnOutput(stack, 'Dashboard', { value: 'https://grafana.example.com' });
    const all = Template.fromStack(stack).findOutputs('*') as Record<string, { Value: unknown; Description?: string }>;
    expect([all['ApiUrl']?.Value, all['Dashboard']?.Value]).toEqual([
      'https://api.example.com',
      'https://grafana.example.com',
    ]);
    expect(Object.keys(all)).toEqual(
      expect.arrayContaining(['CycleArn', expect.stringMatching(/^DayOutputsDashboard[\dA-F]{8}$/)]),
    );
    // By this the command line finds it.
    const described = Object.entries(all).filter(([, o]) => o.Description === API_URL_DESCRIPTION);
    expect(described.map(([key]) => key)).toEqual([expect.stringMatching(/^DayOutputsApiUrl[\dA-F]{8}$/)]);
  });

  it('name both queues as a redrive asks for them', () => {
    expect(outputs['TriggerDeadLettersArn']?.Value).toEqual({
      'Fn::GetAtt': [expect.stringMatching(/^DayTriggerDeadLetters[\dA-F]{8}$/), 'Arn'],
    });
    expect(outputs['TriggerQueueArn']?.Value).toEqual({
      'Fn::GetAtt': [expect.stringMatching(/^DayTriggerQueue[\dA-F]{8}$/), 'Arn'],
    });
  });
});
