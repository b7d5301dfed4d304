import { policy } from '../../policy/policy.ts';
import { jvuSched } from './jvusched.ts';
import { perJob, perJobSharp } from './per-job.ts';
import { strictPriority } from './strict-priority.ts';

/** Worth of finishing, by time. */
export const VALUE = [
  policy(
    'value',
    {
      name: 'jvusched',
      about: 'worth until the deadline, then falling slowly; best-effort work falls over a day',
      source: 'JamaisVu, sections 4.1.2 and 4.3 (JVuSched)',
    },
    jvuSched,
  ),
  policy(
    'value',
    {
      name: 'per-job',
      about: 'the same worth for each job whatever it costs, until the deadline, then falling slowly',
      source: 'JamaisVu, figure 5 and section 4.3 (JVuSched)',
    },
    perJob,
  ),
  policy(
    'value',
    {
      name: 'per-job-sharp',
      about: 'the same worth for each job whatever it costs, nothing once late',
      source: 'JamaisVu, section 4.3, "base" in figure 14',
    },
    perJobSharp,
  ),
  policy(
    'value',
    {
      name: 'strict-priority',
      about: 'deadline work before best effort, the same worth at any time',
      source: 'JamaisVu, section 5 ("prio")',
    },
    strictPriority,
  ),
];
