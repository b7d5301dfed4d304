import { describe, expect, it } from '@jest/globals';
import { resumeCommand } from '../../../lib/cli/unfinished.ts';

describe('how to go on', () => {
  it.each([
    ['.ebb', 'ebb run --resume'],
    ['runs/a-1', 'ebb run --resume --dir runs/a-1'],
    ['my runs', "ebb run --resume --dir 'my runs'"],
    ["it's", "ebb run --resume --dir 'it'\\''s'"],
  ])('in %s is typed %s', (dir, command) => expect(resumeCommand(dir, {})).toBe(command));

  it('is what the one says who starts ebb under another name', () => {
    expect(resumeCommand('x', { EBB_RESUME_COMMAND: 'npm start -- --resume' })).toBe('npm start -- --resume');
  });
});
