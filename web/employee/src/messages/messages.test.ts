// The two languages have the same keys, the same placeholders and no empty text, and say things as people do.
import { checkMessages } from '@tidepool/shared/i18n/check-messages';
import { zh as shared } from '@tidepool/shared/i18n/zh';
import { expect, it } from 'vitest';
import { en } from './en';
import { zh } from './zh';

checkMessages('employee', en, zh);

it.each([
  [en['way.gatewayText'], 'Model only, no tools or memory'],
  [en['menu.way'], 'Connection'],
  [en['chat.cancelEdit'], 'Cancel edit'],
  [en['chat.newest'], 'Jump to latest'],
  [en['help.break'], 'New line'],
  [en['assistant.origin'], 'How you got it'],
  [en['item.update'], 'Update'],
  [en['chat.queued'], 'Waiting to send'],
  [en['password.wrongOld'], 'The current password is incorrect.'],
  [en['chat.gatewayError'], 'The model service returned an error. Trying again may help.'],
  [zh['chat.message'], '给 {name} 发消息'],
  [zh['health.rateLimited'], '已被限流'],
  [zh['way.gatewayText'], '仅使用模型，没有工具和记忆'],
  [zh['chat.cancelEdit'], '取消编辑'],
])('%s', (text, plain) => {
  expect(text).toBe(plain);
});

it('in Chinese a sign-in is no conversation', () => {
  const signIn = Object.entries(shared).filter(([key]) => /^(login|password|account|hop)\./.test(key));
  expect(signIn.filter(([, text]) => text.includes('会话'))).toEqual([]);
});
