// Simplified Chinese texts of the employee app.
import type { Messages } from '@tidepool/shared/i18n/translate';
import { zh as shared } from '@tidepool/shared/i18n/zh';
import type { Key } from '.';

export const zh: Messages<Key> = {
  ...shared,
  'login.lead': '使用工作账号访问您的助手。',
  'login.motto': '水静，答清。',

  'home.morning': '早上好，{name}',
  'home.afternoon': '下午好，{name}',
  'home.evening': '晚上好，{name}',
  'home.hello': '欢迎',
  'home.lead': '您的账号与今日用量。',
  'home.assistants': '助手',
  'home.assistantsNone': '还没有助手',
  'home.assistantsNoneHint': '助手由管理员分配。如果您认为这里应该有助手，请联系管理员。',
  'home.assistantsCount': '已分配 {count} 个',
  'home.toProfile': '打开个人资料',

  'quota.title': '每日 Token',
  'quota.used': '已用 {used} / {limit} 个 Token',
  'quota.left': '剩余 {left}',
  'quota.spent': '今日额度已用完',
  'quota.unlimited': '无每日限额',
  'quota.usedToday': '今日已用 {used} 个 Token',
  'quota.resets': '重置时间',

  'profile.lead': '您的身份信息、界面外观和密码。',
  'profile.department': '部门',
  'profile.since': '加入时间',
};
