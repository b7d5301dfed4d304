import { describe, expect, it } from '@jest/globals';
import { checkExposure, guard, isLoopback } from '../../../lib/api/server/guard.ts';

const TOKEN = 'correct-horse-battery-staple';

describe('which address may be listened on', () => {
  it('knows loopback addresses from others', () => {
    expect(['127.0.0.1', '127.1.2.3', '::1', 'localhost'].every(isLoopback)).toBe(true);
    expect(['0.0.0.0', '::', '10.0.0.1', '127.0.0.1.evil.test', 'localhost.evil.test', ''].some(isLoopback)).toBe(
      false,
    );
  });

  it('demands a token for every other address, and one that is a secret', () => {
    expect(() => checkExposure({ host: '0.0.0.0', token: null })).toThrow('needs a token');
    expect(() => checkExposure({ host: '0.0.0.0', token: 'short' })).toThrow('too short');
    expect(() => checkExposure({ host: '0.0.0.0', token: TOKEN })).not.toThrow();
    expect(() => checkExposure({ host: '127.0.0.1', token: null })).not.toThrow();
  });
});

describe('without a token', () => {
  const check = guard({ host: '127.0.0.1', token: null });

  it.each(['127.0.0.1:7788', 'localhost', 'LOCALHOST:1', '[::1]:7788'])('lets host %s pass', (host) => {
    expect(() => check({ host })).not.toThrow();
  });

  it.each(['evil.test', '127.0.0.1.evil.test:7788', 'localhost@evil.test', '', '::1'])('refuses host %j', (host) => {
    expect(() => check({ host })).toThrow(expect.objectContaining({ code: 'forbidden' }));
  });

  it('refuses a request without a host', () => {
    expect(() => check({})).toThrow(expect.objectContaining({ code: 'forbidden' }));
  });

  it('refuses a page of another site, and lets one of its own pass', () => {
    expect(() => check({ host: 'localhost:7788', origin: 'https://evil.test' })).toThrow('another site');
    expect(() => check({ host: 'localhost:7788', origin: 'http://localhost:9999' })).toThrow('another site');
    expect(() => check({ host: 'localhost:7788', origin: 'null' })).toThrow('another site');
    expect(() => check({ host: 'localhost:7788', origin: 'http://localhost:7788' })).not.toThrow();
  });
});

describe('with a token', () => {
  const check = guard({ host: '0.0.0.0', token: TOKEN });

  it('lets the right token pass under any host', () => {
    expect(() => check({ host: 'batch.example', authorization: `Bearer ${TOKEN}` })).not.toThrow();
    expect(() => check({ host: 'batch.example', authorization: `bearer  ${TOKEN} ` })).not.toThrow();
  });

  it.each([undefined, '', 'Bearer', `Basic ${TOKEN}`, `Bearer ${TOKEN}x`, `Bearer ${TOKEN.slice(1)}`, TOKEN])(
    'refuses %j',
    (authorization) => {
      expect(() => check({ host: 'batch.example', ...(authorization === undefined ? {} : { authorization }) })).toThrow(
        expect.objectContaining({ code: 'unauthorized' }),
      );
    },
  );
});
