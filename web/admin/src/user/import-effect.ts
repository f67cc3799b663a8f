// What a line of an import does, in sentences.
import type { Key } from '../messages';
import type { ImportLine } from '../records';
import { isOwn, type Translate } from './import-texts';

const FIELDS: Record<ImportLine['changes'][number]['field'], Key> = {
  name: 'users.name',
  department: 'users.department',
  quota_daily: 'users.quota',
  password: 'users.password',
};

/** Each is a line of its own on the screen. */
export function effectTexts(line: ImportLine, t: Translate, number: (value: number) => string): string[] {
  const { refusal, profession } = line;
  if (refusal) {
    const key = `import.reason.${refusal.reason}`;
    // A newer server may have reasons that have no text here.
    return [isOwn(key) ? t(key) : refusal.message];
  }
  const value = (field: string, text: string | null | undefined) => {
    if (field !== 'quota_daily') return text || t('import.nothing');
    return text === '0' ? t('users.noLimit') : t('users.tokensPerDay', { count: number(Number(text)) });
  };
  const texts: string[] = [];
  if (line.action === 'create') {
    const values = line.changes
      .filter(({ field }) => field !== 'password')
      .map(({ field, new: text }) => value(field, text));
    const hasPassword = line.changes.some(({ field }) => field === 'password');
    texts.push([...values, t(hasPassword ? 'users.byPassword' : 'users.bySso')].join(' · '));
  } else {
    for (const { field, old, new: text } of line.changes) {
      const values = { field: t(FIELDS[field]), old: value(field, old), new: value(field, text) };
      texts.push(t('import.changed', values));
    }
  }
  if (profession) {
    const { name, instance_id: instance } = profession;
    texts.push(
      instance ? t('import.gets', { instance, profession: name }) : t('import.has', { profession: name }),
    );
  }
  if (line.password_ignored) texts.push(t('import.passwordIgnored'));
  return texts;
}
