// Simplified Chinese texts of the administration console.
import type { Messages } from '@tidepool/shared/i18n/translate';
import { zh as shared } from '@tidepool/shared/i18n/zh';
import type { Key } from '.';
import { cell } from './zh/cell';
import { fleet } from './zh/fleet';
import { frame } from './zh/frame';
import { instances } from './zh/instances';
import { operations } from './zh/operations';
import { overview } from './zh/overview';
import { servers } from './zh/servers';
import { users } from './zh/users';

export const zh: Messages<Key> = {
  ...shared,
  ...frame,
  ...overview,
  ...instances,
  ...cell,
  ...servers,
  ...users,
  ...fleet,
  ...operations,
};
