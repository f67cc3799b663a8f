// What each adoption would change, what came of it, and which gateways of the server are left out, with the reason for each.
import type { ReactNode } from 'react';
import type { Adoption, AdoptionPreview, DiscoveredGateway } from '../records';
import { useAdoptText } from './adopt-texts';
import { obstacleText, shownName } from './discovered-text';

interface PreviewsProps {
  list: readonly AdoptionPreview[];
  /** Of the employees who get them, by the key of their gateway. */
  emails: ReadonlyMap<string, string | null>;
  /** Gateways of the server that cannot be adopted. */
  left: readonly DiscoveredGateway[];
  restart: boolean;
}

export function Previews({ list, emails, left, restart }: PreviewsProps) {
  const { t } = useAdoptText();
  return (
    <ul className="divide-y divide-line text-sm">
      {list.map((one) => (
        <Line key={one.key} name={one.instance_id}>
          {emails.get(one.key) != null && (
            <span className="wrap-anywhere">{t('adopt.for', { email: emails.get(one.key) ?? '' })} </span>
          )}
          <PreviewText preview={one} restart={restart} />
        </Line>
      ))}
      <LeftOut list={left} />
    </ul>
  );
}

function PreviewText({ preview, restart }: { preview: AdoptionPreview; restart: boolean }) {
  const { t, number } = useAdoptText();
  const { changes, refusal, needs_restart: needsRestart, only_observed: isObserved } = preview;
  if (refusal != null) return <Refusal reason={refusal} />;
  if (changes.length === 0)
    return <span className="text-muted">{t(isObserved ? 'adopt.nothingObserved' : 'adopt.nothing')}</span>;
  const summary = [
    changes.length === 1 ? t('adopt.writesOne') : t('adopt.writes', { count: number(changes.length) }),
    needsRestart && t(restart ? 'adopt.restarts' : 'adopt.waits'),
  ];
  return (
    <details>
      <summary className="cursor-pointer text-muted">
        {summary.filter(Boolean).join(t('adopt.comma'))}
      </summary>
      <ul className="mt-1 space-y-1">
        {changes.map((change) => (
          <li key={change.name} className="font-mono text-xs break-all">
            {change.name}: {change.observed} → {change.desired}
          </li>
        ))}
      </ul>
    </details>
  );
}

interface ResultsProps {
  list: readonly Adoption[];
  left: readonly DiscoveredGateway[];
}

export function Results({ list, left }: ResultsProps) {
  const { t, number } = useAdoptText();
  const adopted = list.filter((one) => one.refusal == null);
  const refused = list.filter((one) => one.refusal != null);
  return (
    <>
      <p role="status" className="font-medium">
        {t('adopt.done', {
          adopted: number(adopted.length),
          skipped: number(refused.length + left.length),
        })}
      </p>
      <ul className="divide-y divide-line text-sm">
        {[...adopted, ...refused].map((one) => (
          <Line key={one.key} name={one.instance_id}>
            {one.refusal != null ? (
              <Refusal reason={one.refusal} />
            ) : (
              <span className="text-muted">
                {t('adopt.adopted')} {one.task_id != null && t('adopt.written')}
              </span>
            )}
          </Line>
        ))}
        <LeftOut list={left} />
      </ul>
    </>
  );
}

function LeftOut({ list }: { list: readonly DiscoveredGateway[] }) {
  const { t } = useAdoptText();
  return list.map((one) => (
    <Line key={one.key} name={shownName(one)}>
      <Refusal reason={obstacleText(one.obstacle ?? '', t)} />
    </Line>
  ));
}

function Line({ name, children }: { name: string; children: ReactNode }) {
  return (
    <li className="py-2">
      <span className="font-medium break-all">{name}</span> {children}
    </li>
  );
}

function Refusal({ reason }: { reason: string }) {
  const { t } = useAdoptText();
  return <span className="text-danger">{t('adopt.skipped', { reason })}</span>;
}
