// Whatever the server starts a task by has words in both languages; a person's address stays what it is.
import { expect, it } from 'vitest';
import { en } from './messages/en';
import { zh } from './messages/zh';
import { sourceText } from './source-text';

it.each([
  ['claim', 'Employee’s claim', '员工领取'],
  ['profession claim', 'Claim by profession', '按职业领取'],
  ['marketplace', 'Marketplace', '市场'],
  ['System', 'The platform', '平台'],
  // A repair's rule, the job that repairs, and the task that another one follows.
  ['no_api_key', 'Key for the model missing', '缺少模型密钥'],
  ['llm_self_heal', 'Self-heal', '自愈'],
  ['clean_instance', 'Clean the workspace', '清理工作区'],
])('%s', (source, english, chinese) => {
  expect(sourceText(source, (key) => en[key])).toBe(english);
  expect(sourceText(source, (key) => zh[key])).toBe(chinese);
});

it.each([
  'give back',
  'reclaim',
  'bind',
  'instance released',
  'instance deleted',
  'user status',
  'daily quota',
  'key changed',
  'changed meanwhile',
  'reminder',
  'key sync',
  'models sync',
  'alert',
  'reconcile',
  'exit_loop',
  'auto_recovery',
  'apply_key',
  'reconcile_instance',
  'clear_webhook',
  'deliver_alert',
])('%s has words of its own', (source) => {
  expect(sourceText(source, (key) => en[key])).not.toBe(source);
  expect(sourceText(source, (key) => zh[key])).not.toBe(source);
});

it.each(['admin@demo.example', 'moon', 'constructor', ''])('%s stays as it is', (source) => {
  expect(sourceText(source, (key) => en[key])).toBe(source);
});
