/**
 * Custom resources, which LocalStack 4.9.2 skips. Their functions are invoked here as by CloudFormation, and their
 * answers received in its place. https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref.html
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { ACCOUNT } from './deploy.ts';
import { DeployedFunction, type Place } from './functions.ts';
import type { Template } from './template.ts';

const TYPES = 'Custom::Ebbtide';

/** Makes the template's custom resources, one after another. Throws the reason of the first failure. */
export async function makeCustomResources(template: Template, place: Place): Promise<void> {
  const all = Object.entries(template.Resources).filter(([, { Type }]) => Type.startsWith(TYPES));
  for (const [LogicalResourceId, { Properties = {} }] of inOrder(all)) {
    const { ServiceToken, ServiceTimeout: _, ...ResourceProperties } = Properties;
    const [id = ''] = (ServiceToken as { 'Fn::GetAtt': readonly string[] })['Fn::GetAtt'];
    const about = String(template.Resources[id]?.Properties?.['Description']);
    const asked = await DeployedFunction.about(place, about);
    const { Status, Reason } = await answerTo(async (ResponseURL) => {
      const StackId = `arn:aws:cloudformation:${place.region}:${ACCOUNT}:stack/rehearsed`;
      const ids = { StackId, RequestId: LogicalResourceId, LogicalResourceId };
      await asked.invoke({ RequestType: 'Create', ResponseURL, ...ids, ResourceProperties });
    });
    if (Status !== 'SUCCESS') throw new Error(`${LogicalResourceId}: ${Reason ?? ''}`);
  }
}

type Entry = readonly [string, Template['Resources'][string]];

/** Order by dependency. */
function inOrder(all: readonly Entry[]): readonly Entry[] {
  const needs = (entry: Entry, other: Entry): boolean => [entry[1].DependsOn ?? []].flat().includes(other[0]);
  return all.toSorted((a, b) => Number(needs(a, b)) - Number(needs(b, a)));
}

interface Said {
  readonly Status: 'SUCCESS' | 'FAILED';
  readonly Reason?: string;
}

/** Answer that is put to an address during `ask`. */
async function answerTo(ask: (url: string) => Promise<void>): Promise<Said> {
  const said: Said[] = [];
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      said.push(JSON.parse(body) as Said);
      response.end();
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  try {
    await ask(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
  const [answer] = said;
  if (answer === undefined) throw new Error('a custom resource did not answer');
  return answer;
}
