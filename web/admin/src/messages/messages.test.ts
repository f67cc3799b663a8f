// The two languages have the same keys, the same placeholders and no empty text.
import { checkMessages } from '@tidepool/shared/i18n/check-messages';
import { en } from './en';
import { zh } from './zh';

checkMessages('admin', en, zh);
