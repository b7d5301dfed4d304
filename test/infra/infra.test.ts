/**
 * Everything about what is deployed, as one file: loading the CDK takes seconds of processor time in jest, so it is
 * loaded once, and the suites share the templates that they read. One suite alone: `npm run jest -- test/infra -t 'the
 * API'`.
 */
import './access.suite.ts';
import './app.suite.ts';
import './bundle.suite.ts';
import './calls.suite.ts';
import './cluster.suite.ts';
import './config.suite.ts';
import './cycle.suite.ts';
import './data.suite.ts';
import './deploy-page.suite.ts';
import './functions.suite.ts';
import './nag.suite.ts';
import './needed.suite.ts';
import './operations.suite.ts';
import './outputs.suite.ts';
import './rights-page.suite.ts';
import './summary.suite.ts';
import './update.suite.ts';
