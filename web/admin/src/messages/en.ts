// English texts of the administration console.
import { en as shared } from '@tidepool/shared/i18n/en';
import { cell } from './en/cell';
import { fleet } from './en/fleet';
import { frame } from './en/frame';
import { instances } from './en/instances';
import { operations } from './en/operations';
import { overview } from './en/overview';
import { servers } from './en/servers';
import { users } from './en/users';

export const en = {
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
