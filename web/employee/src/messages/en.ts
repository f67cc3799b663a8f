// English texts of the employee app.
import { en as shared } from '@tidepool/shared/i18n/en';

export const en = {
  ...shared,
  'login.lead': 'Use your work account to reach your assistants.',
  'login.motto': 'Calm water, clear answers.',

  'home.morning': 'Good morning, {name}',
  'home.afternoon': 'Good afternoon, {name}',
  'home.evening': 'Good evening, {name}',
  'home.hello': 'Welcome',
  'home.lead': 'Your account and what you have used today.',
  'home.assistants': 'Assistants',
  'home.assistantsNone': 'No assistant yet',
  'home.assistantsNoneHint':
    'Your administrator assigns assistants to you. Ask them if you expected one here.',
  'home.assistantsCount': '{count} assigned to you',
  'home.toProfile': 'Open profile',

  'quota.title': 'Daily tokens',
  'quota.used': '{used} of {limit} tokens used',
  'quota.left': '{left} left',
  'quota.spent': 'Used up for today',
  'quota.unlimited': 'No daily limit',
  'quota.usedToday': '{used} tokens used today',
  'quota.resets': 'Resets',

  'profile.lead': 'Who you are here, how the app looks, and your password.',
  'profile.department': 'Department',
  'profile.since': 'Joined',
};
