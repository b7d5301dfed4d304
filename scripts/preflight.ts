/**
 * `npm run preflight`: obstacles to `npx cdk deploy --all` with these credentials, found before anything is made. Takes
 * the same configuration: ebbtide.config.yaml, and values as `-- -c ebbtide:maxVcpus=64`. Exit code 1 if there are
 * obstacles.
 */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { EC2Client } from '@aws-sdk/client-ec2';
import { defaultProvider } from '@aws-sdk/credential-provider-node';
import pc from 'picocolors';
import { preflight } from '../lib/drivers/aws/preflight/preflight.ts';
import { imageParameterOf } from '../lib/drivers/aws/fleet/image.ts';
import { renderError } from '../lib/cli/failure.ts';
import { architectureOf } from '../lib/infra/config-rules.ts';
import { readDeployment } from '../lib/infra/read-config.ts';
import { EbbError, type Issue } from '../lib/kernel/errors.ts';

const { values } = parseArgs({
  options: { context: { type: 'string', short: 'c', multiple: true, default: [] } },
});
const context = Object.fromEntries(
  values.context.map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]),
);

/** Placeholder: the configuration is read before AWS tells the account. */
const ANY_ACCOUNT = '000000000000';

/** Qualifier of the CDK: of the command line, or of cdk.json. */
function qualifierIn(given: Readonly<Record<string, string>>): string | undefined {
  const key = '@aws-cdk/core:bootstrapQualifier';
  const { context: kept } = JSON.parse(readFileSync(new URL('../cdk.json', import.meta.url), 'utf8')) as {
    context: Readonly<Record<string, string>>;
  };
  return given[key] ?? kept[key];
}

const lines = (mark: string, issues: readonly Issue[]): string =>
  issues.map(({ at, message }) => `${mark} ${at}: ${message}\n`).join('');

try {
  const ofProfile = await new EC2Client().config.region().catch(() => undefined);
  const { account: named, ...given } = readDeployment({ context, account: ANY_ACCOUNT, region: ofProfile });
  const { region } = given;
  if (region === undefined) {
    throw new EbbError('usage', {
      what: 'no AWS region is known',
      next: 'set `region` in ebbtide.config.yaml, or AWS_REGION, or a profile that has one',
    });
  }
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
    ec2: new EC2Client({ region, credentials }),
    config: { ...given, ...(named === ANY_ACCOUNT ? {} : { account: named }) },
    imageParameter: imageParameterOf(architectureOf(given)),
    qualifier: qualifierIn(context),
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
