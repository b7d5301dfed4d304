/**
 * `npm run preflight`: what would stop `npx cdk deploy --all` with these credentials, before anything is made. Takes the same
 * configuration: ebbtide.config.yaml, and values as `-- -c ebbtide:maxVcpus=64`. Exit code 1 where something would.
 */
import { parseArgs } from 'node:util';
import { CloudFormationClient } from '@aws-sdk/client-cloudformation';
import { defaultProvider } from '@aws-sdk/credential-provider-node';
import pc from 'picocolors';
import { preflight } from '../lib/aws/deploying/preflight.ts';
import { renderError } from '../lib/cli/failure.ts';
import { readDeployment } from '../lib/infra/read-config.ts';
import { EbbError, type Issue } from '../lib/kernel/errors.ts';

const { values } = parseArgs({
  options: { context: { type: 'string', short: 'c', multiple: true, default: [] } },
});
const context = Object.fromEntries(
  values.context.map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]),
);

const lines = (mark: string, issues: readonly Issue[]): string =>
  issues.map(({ at, message }) => `${mark} ${at}: ${message}\n`).join('');

try {
  const given = readDeployment({ context });
  const client = new CloudFormationClient(given.region === undefined ? {} : { region: given.region });
  const region = await client.config.region().catch((cause: unknown) => {
    throw new EbbError('usage', {
      what: 'no AWS region is known',
      next: 'set `region` in ebbtide.config.yaml, or AWS_REGION, or a profile that has one',
      cause,
    });
  });
  const credentials = defaultProvider();
  await credentials().catch((cause: unknown) => {
    throw new EbbError('aws.refused', {
      what: 'no AWS credentials were found',
      got: String(cause),
      next: 'log in (`aws sso login`), or name a profile in AWS_PROFILE',
      cause,
    });
  });
  const { account, failures, notes } = await preflight({
    caller: { region, credentials },
    cloudFormation: client,
    account: given.account,
    maxVcpus: given.maxVcpus,
  });
  process.stdout.write(`account ${account ?? 'unknown'}, region ${region}\n`);
  process.stdout.write(lines(pc.yellow('note'), notes) + lines(pc.red('STOPS'), failures));
  if (failures.length === 0) process.stdout.write(`${pc.green('ready')}: npx cdk deploy --all\n`);
  process.exitCode = failures.length === 0 ? 0 : 1;
} catch (error) {
  if (!(error instanceof EbbError)) throw error;
  process.stderr.write(`${renderError(error, { colors: pc })}\n`);
  process.exitCode = error.exit;
}
