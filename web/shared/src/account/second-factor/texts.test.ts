// The two languages of the second factor have the same keys and placeholders.
import { checkMessages } from '../../i18n/check-messages';
import { en, zh } from './texts';

checkMessages('second factor', en, zh);
