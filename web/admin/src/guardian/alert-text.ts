// An alert in words: its title, its message, and where to look. A repair that needs somebody is named by what was found.
import { ALERT_RULES, type AlertRule } from '@tidepool/shared/api/registry.gen';
import { askText } from '../instance/ask-text';
import type { Key } from '../messages';
import type { Alert } from '../records';
import { ruleText } from './rule-text';

/** A rule that this version does not know is shown as the server names it. */
export function alertRuleText(rule: string, t: (key: Key) => string): string {
  const known: readonly string[] = ALERT_RULES;
  return known.includes(rule) ? t(`alerts.${rule as AlertRule}`) : rule;
}

export interface AlertText {
  title: string;
  message: string;
  /** The instance that it is about. */
  instance?: { id: string; href: string };
  /** A person must decide what becomes of a difference: the link leads to where that is done. */
  asks?: true;
}

/** How the server says what differs, and why that waits for a person. */
const DIFFERENCE = /^\S+ is not what our records want \((.*)\); (.*)$/s;

export function alertText(
  alert: Pick<Alert, 'rule' | 'subject' | 'message'>,
  t: (key: Key) => string,
): AlertText {
  const [kind, id = '', about = ''] = alert.subject.split(':');
  const href = `/instances?open=${encodeURIComponent(id)}`;
  if (kind === 'repair' && about !== '') {
    // The message begins with what title and link say already.
    const prefix = `${id}: ${about}: `;
    const message = alert.message.startsWith(prefix) ? alert.message.slice(prefix.length) : alert.message;
    return { title: ruleText(about, t), message, instance: { id, href: `${href}&tab=repairs` } };
  }
  const title = alertRuleText(alert.rule, t);
  if (kind !== 'instance') return { title, message: alert.message };
  if (about === 'configuration') {
    const [, differs = '', why = ''] = DIFFERENCE.exec(alert.message) ?? [];
    return {
      title: t('alerts.differs'),
      message: differs === '' ? alert.message : `${differs} · ${askText(why, t)}`,
      instance: { id, href: `${href}&tab=state` },
      asks: true,
    };
  }
  // The limit, and how much of it is used, are in the tab of its cell.
  const tab = alert.rule === 'disk_over_limit' ? '&tab=cell' : '';
  return { title, message: alert.message, instance: { id, href: `${href}${tab}` } };
}
