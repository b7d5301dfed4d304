import type { JobView } from '../../api/schemas.ts';
import { ERROR_CODES } from '../../kernel/errors.ts';
import type { Action } from '../context.ts';
import { watchJobs } from '../monitor.ts';
import { json } from '../output.ts';
import { routes } from '../routes.ts';
import { onStopRequest } from '../signals.ts';
import { failureSection, failuresOf } from '../views/failures.ts';
import { deadlineText, stateText } from '../views/job-views.ts';
import { text } from '../views/text-table.ts';
import { verdict } from '../views/summary.ts';

export const watch: Action<object> = async ({ output, json: asJson, client }, [ref]) => {
  const engine = await client();
  const job = ref === undefined ? null : await engine.get<JobView>(routes.job(ref));
  const stop = new AbortController();
  const unlisten = onStopRequest(() => stop.abort());
  try {
    await watchJobs({
      client: engine,
      output,
      jobs: job === null ? null : [job.id],
      signal: stop.signal,
      after: 0,
      line: (line) => output.line(line),
      ...(asJson ? { onEvent: (event) => json(output, event) } : {}),
    });
  } finally {
    unlisten();
  }
  // Leaving the display interrupts nothing.
  if (job === null || stop.signal.aborted) return 0;
  const ended = await engine.get<JobView>(routes.job(job.id));
  if (!asJson) {
    output.line(`${text(ended.name)} ${stateText(output, ended.state)}, deadline ${deadlineText(ended, ended.asOf)}`);
    const failures = await failuresOf(engine, ended);
    if (failures !== null) output.line(failureSection(output, failures));
  }
  const code = verdict(ended);
  return code === null ? 0 : ERROR_CODES[code].exit;
};
