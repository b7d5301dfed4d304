import { describe, expect, it } from '@jest/globals';
import { endMeaning, FOREIGN_IMAGE, type EndWords } from '../../../../lib/drivers/aws/fleet/stop-reasons.ts';

/**
 * What ECS says at the end of a task, as its documentation and reports of users quote it, with what follows from it by
 * our own table (docs/running-on-aws.md). Pages of docs.aws.amazon.com/AmazonECS/latest/developerguide unless named
 * otherwise.
 */
const ENDS: readonly (readonly [string, EndWords, { isHostGone?: true; isAsked?: true; says?: RegExp | null }])[] = [
  [
    'an exit of its own (API_Task; stopped-task-error-codes)',
    { stopCode: 'EssentialContainerExited', stoppedReason: 'Essential container in task exited', exitCode: 1 },
    { says: null },
  ],
  [
    'memory (out-of-memory)',
    {
      stopCode: 'EssentialContainerExited',
      stoppedReason: 'Essential container in task exited',
      reason: 'OutOfMemoryError: container killed due to memory usage',
    },
    { says: /resources\.memory/ },
  ],
  [
    'an image that is not there (task_cannot_pull_image)',
    {
      stopCode: 'TaskFailedToStart',
      stoppedReason:
        'CannotPullContainerError: pull image manifest has been retried 1 time(s): failed to resolve ref registry.example/app:v2: not found',
    },
    { says: /name and the tag in `image`/ },
  ],
  [
    'an image of another processor (task_cannot_pull_image)',
    {
      stopCode: 'TaskFailedToStart',
      stoppedReason:
        "CannotPullContainerError: image Manifest does not contain descriptor matching platform 'linux/amd64'",
    },
    { says: /buildx build --platform/ },
  ],
  [
    'the same in the words of Docker',
    {
      stopCode: 'TaskFailedToStart',
      stoppedReason:
        'CannotPullContainerError: Error response from daemon: no matching manifest for linux/arm64/v8 in the manifest list entries',
    },
    { says: /buildx build --platform/ },
  ],
  [
    'a shell of another processor',
    {
      stopCode: 'TaskFailedToStart',
      reason: 'CannotStartContainerError: Error response from daemon: exec /bin/sh: exec format error',
    },
    { says: /buildx build --platform/ },
  ],
  [
    'a registry that refuses (task_cannot_pull_image)',
    {
      stopCode: 'TaskFailedToStart',
      stoppedReason:
        'CannotPullContainerError: Error response from daemon: pull access denied for app, repository does not exist or may require docker login: denied: requested access to the resource is denied',
    },
    { says: /name and the tag|no right to it/ },
  ],
  [
    'a registry that is tired (task_cannot_pull_image)',
    {
      stopCode: 'TaskFailedToStart',
      reason: 'CannotPullContainerError: toomanyrequests: You have reached your pull rate limit.',
    },
    { says: /keep a copy in ECR/ },
  ],
  [
    'a network without a way out (task_cannot_pull_image)',
    {
      stopCode: 'TaskFailedToStart',
      reason: 'CannotPullContainerError: dial tcp 10.0.0.5:443: i/o timeout',
    },
    { says: /see `vpc`/ },
  ],
  [
    'an image without a shell (cannot-start-container)',
    {
      stopCode: 'TaskFailedToStart',
      reason:
        'CannotStartContainerError: Error response from daemon: OCI runtime create failed: exec: "sh": executable file not found in $PATH: unknown',
    },
    { says: /must have a shell/ },
  ],
  [
    'a stop that was asked for (API_StopTask)',
    { stopCode: 'UserInitiated', stoppedReason: 'ebb: preempted' },
    { isAsked: true },
  ],
  [
    'the end of the host (ecs_task_events)',
    { stopCode: 'TerminationNotice', stoppedReason: 'Host EC2 (instance i-0a1b2c3d4e5f67890) terminated.' },
    { isHostGone: true },
  ],
  [
    'a host that was stopped, without a code',
    { stoppedReason: 'Host EC2 (instance i-0a1b2c3d4e5f67890) stopped.' },
    { isHostGone: true },
  ],
  [
    'an interruption (API_Task)',
    { stopCode: 'SpotInterruption', stoppedReason: 'Your Spot Task was interrupted.' },
    { isHostGone: true },
  ],
  ['a host that is not well (API_Task)', { stopCode: 'InfrastructureHealth' }, { isHostGone: true, says: null }],
];

describe('the end of a task', () => {
  it.each(ENDS)('%s', (_, words, { isHostGone = false, isAsked = false, says }) => {
    const meaning = endMeaning(words);
    expect([meaning.isHostGone, meaning.isAsked]).toEqual([isHostGone, isAsked]);
    if (says === null) expect(meaning.detail).toBeNull();
    if (says instanceof RegExp) expect(meaning.detail).toMatch(says);
    // ECS' own words stay: a person may look for them.
    if (meaning.detail !== null) expect(meaning.detail).toContain(words.reason ?? words.stoppedReason);
  });

  it('says once what ECS says twice', () => {
    const same = 'CannotPullContainerError: no matching manifest for linux/amd64';
    expect(endMeaning({ stopCode: 'TaskFailedToStart', stoppedReason: same, reason: same }).detail).toBe(
      `${same}; ${FOREIGN_IMAGE}`,
    );
  });
});
