import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface CustomResourceAnswer {
  readonly Status: string;
  readonly Reason: string;
  readonly PhysicalResourceId: string;
  readonly RequestId: string;
}

/** Plays CloudFormation to a function behind a custom resource: asks, and waits for the object that it puts. */
export async function askedByCloudFormation(
  ask: (event: object) => Promise<unknown>,
  of: { readonly properties: object; readonly kind?: 'Create' | 'Update' | 'Delete'; readonly status?: number },
): Promise<CustomResourceAnswer[]> {
  const answers: CustomResourceAnswer[] = [];
  const server = createServer((request, response) => {
    void (async () => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      if (request.method === 'PUT') answers.push(JSON.parse(Buffer.concat(chunks).toString()) as CustomResourceAnswer);
      response.writeHead(of.status ?? 200).end();
    })();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  try {
    await ask({
      RequestType: of.kind ?? 'Create',
      ResponseURL: `http://127.0.0.1:${port}/answer?signed=1`,
      StackId: 'arn:aws:cloudformation:us-east-1:000000000000:stack/Ebbtide/1',
      RequestId: '5f1d7a9e',
      LogicalResourceId: 'EbbtideDeployingRegion',
      ResourceType: 'Custom::EbbtideRegion',
      // CloudFormation adds the function itself to the properties.
      ResourceProperties: { ServiceToken: 'arn:aws:lambda:us-east-1:000000000000:function:check', ...of.properties },
    });
    return answers;
  } finally {
    server.closeAllConnections();
    server.close();
  }
}
