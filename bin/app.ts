/** The CDK app: `npx cdk deploy --all`. What it deploys is said in ebbtide.config.yaml; see docs/deploy.md. */
import { App } from 'aws-cdk-lib';
import pc from 'picocolors';
import { renderError } from '../lib/cli/failure.ts';
import { readDeployment } from '../lib/infra/read-config.ts';
import { ebbtideStacks } from '../lib/infra/stacks.ts';
import { EbbError } from '../lib/kernel/errors.ts';

// The CDK's check against CloudFormation's schemas takes a third of the time. Tests make it, of each kind of
// configuration.
const app = new App({ builtinCloudFormationValidation: false });
try {
  const config = readDeployment({
    context: app.node.getAllContext() as Record<string, unknown>,
    // Set by the CDK's command line where there are credentials.
    account: process.env['CDK_DEFAULT_ACCOUNT'],
    region: process.env['CDK_DEFAULT_REGION'],
  });
  ebbtideStacks(app, config);
} catch (error) {
  if (!(error instanceof EbbError)) throw error;
  process.stderr.write(`${renderError(error, { colors: pc })}\n`);
  process.exit(error.exit);
}
