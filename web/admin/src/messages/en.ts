// English texts of the administration console.
import { en as shared } from '@tidepool/shared/i18n/en';

export const en = {
  ...shared,
  'app.tag': 'Console',
  'login.lead': 'Administration console. Use your administrator account.',
  'login.motto': 'Every server, assistant and token in view, from the surface to the bottom.',

  'home.title': 'Console',
  'home.lead': 'Signed in as {role}.',
  'home.toProfile': 'Open profile',
  'home.docs': 'API reference',
  'home.docsText':
    'Everything this console does goes through the administration API. Its reference lists each operation.',
  'home.openDocs': 'Open the reference',

  'role.super_admin': 'Super administrator',
  'role.admin': 'Administrator',
  'account.role': 'Role',
  'profile.lead': 'Who you are here, how the console looks, and your password.',
};
