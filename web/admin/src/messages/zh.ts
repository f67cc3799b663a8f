// Simplified Chinese texts of the administration console.
import type { Messages } from '@tidepool/shared/i18n/translate';
import { zh as shared } from '@tidepool/shared/i18n/zh';
import type { Key } from '.';

export const zh: Messages<Key> = {
  ...shared,
  'app.tag': '控制台',
  'login.lead': '管理控制台，请使用管理员账号登录。',
  'login.motto': '服务器、助手与用量，从水面到水底，尽在眼前。',

  'home.title': '控制台',
  'home.lead': '当前身份：{role}。',
  'home.toProfile': '打开个人资料',
  'home.docs': 'API 文档',
  'home.docsText': '控制台的所有操作都通过管理 API 完成，文档列出了每一个接口。',
  'home.openDocs': '打开文档',

  'role.super_admin': '超级管理员',
  'role.admin': '管理员',
  'account.role': '角色',
  'profile.lead': '您的身份信息、界面外观和密码。',
};
