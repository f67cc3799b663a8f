// The badge of an instance: none for one with a user of its own, and some words for every other, seen or not.
import { expect, it } from 'vitest';
import { en } from '../messages/en';
import { zh } from '../messages/zh';
import { isNeverCleaned, isOffered, runsAsText } from './runs-as';

it.each([
  ['own', 'assistant-70000', '', null, null],
  ['none', '', '', null, null],
  ['shared', 'root', '', 'runs as {user}', '以 {user} 身份运行'],
  ['adopted', 'claw', '', 'runs as {user}', '以 {user} 身份运行'],
  ['adopted', '', 'claw', 'in a container', '在容器中运行'],
  ['adopted', '', '', 'no user of its own', '无独立用户'],
  ['shared', '', '', 'no user of its own', '无独立用户'],
  ['opened', 'assistant-70000', '', 'open cell: counts as root', '沙箱已开放：视同 root'],
  ['unknown', '', '', 'user not checked yet', '运行用户未检查'],
] as const)('%s, seen as "%s", container "%s"', (isolation, runs_as, container_id, english, chinese) => {
  const instance = { isolation, runs_as, container_id };
  expect(runsAsText(instance, (key) => en[key])).toBe(english);
  expect(runsAsText(instance, (key) => zh[key])).toBe(chinese);
  expect(isOffered(instance)).toBe(english === null);
});

it('cleans what the platform made, and what nobody has looked at yet, since the task that cleans looks first', () => {
  const cleaned = (['own', 'none', 'unknown', 'opened'] as const).filter(
    (isolation) => !isNeverCleaned({ isolation }),
  );
  expect(cleaned).toEqual(['own', 'none', 'unknown', 'opened']);
  expect(isNeverCleaned({ isolation: 'adopted' }) && isNeverCleaned({ isolation: 'shared' })).toBe(true);
});
