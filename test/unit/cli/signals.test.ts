import { EventEmitter } from 'node:events';
import { describe, expect, it } from '@jest/globals';
import { ONE_REQUEST_MS, onStopRequest, type SignalSource } from '../../../lib/cli/signals.ts';

function listening(launched: boolean) {
  const process = new EventEmitter();
  const sent: unknown[] = [];
  const requests: number[] = [];
  let unreferenced = 0;
  const source: SignalSource = Object.assign(
    process,
    launched ? { send: (m: unknown) => sent.push(m), channel: { unref: () => void unreferenced++ } } : {},
  );
  let ms = 0;
  const unlisten = onStopRequest(
    (count) => requests.push(count),
    source,
    () => ms,
  );
  const pass = (more: number): void => void (ms += more);
  return { process, sent, requests, unlisten, pass, unreferenced: () => unreferenced };
}

describe('stop requests', () => {
  it('counts each signal', () => {
    const { process, requests, pass } = listening(false);
    process.emit('SIGINT');
    pass(ONE_REQUEST_MS);
    process.emit('SIGTERM');
    expect(requests).toEqual([1, 2]);
  });

  it('counts once what comes at once, as `timeout` signals a process and then its group', () => {
    const { process, requests, pass } = listening(false);
    process.emit('SIGTERM');
    pass(ONE_REQUEST_MS - 1);
    process.emit('SIGTERM');
    expect(requests).toEqual([1]);
    // Not put off by what belonged to the first.
    pass(1);
    process.emit('SIGTERM');
    expect(requests).toEqual([1, 2]);
  });

  it('counts a press once that came by the terminal and by the launcher, in either order', () => {
    const { process, requests, pass } = listening(true);
    process.emit('SIGINT');
    pass(ONE_REQUEST_MS);
    process.emit('message', { signal: 'SIGINT' });
    expect(requests).toEqual([1]);
    pass(ONE_REQUEST_MS);
    process.emit('message', { signal: 'SIGINT' });
    pass(ONE_REQUEST_MS);
    process.emit('SIGINT');
    expect(requests).toEqual([1, 2]);
  });

  it('tells the launcher that it handles signals, and takes its death for a request to stop', () => {
    const { process, sent, requests } = listening(true);
    expect(sent).toEqual([{ handlesSignals: true }]);
    process.emit('disconnect');
    expect(requests).toEqual([1]);
  });

  it('ignores messages that are not signals', () => {
    const { process, requests } = listening(true);
    for (const message of [null, 'SIGINT', { signal: 'SIGKILL' }, {}]) process.emit('message', message);
    expect(requests).toEqual([]);
  });

  it('does not keep the process alive, and leaves no listener behind', () => {
    const { process, unlisten, unreferenced } = listening(true);
    expect(unreferenced()).toBe(1);
    unlisten();
    expect(process.eventNames().filter((name) => process.listenerCount(name) > 0)).toEqual([]);
  });
});
