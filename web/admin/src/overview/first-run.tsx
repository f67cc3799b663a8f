// The way from an empty installation to the first assistant that answers: each line turns green by itself. It has its place
// from the beginning, so that nothing jumps when the answers come, and leaves for good when all is done.
import type { Permission } from '@tidepool/shared/api/registry.gen';
import { readStored, writeStored } from '@tidepool/shared/storage';
import { buttonClass } from '@tidepool/shared/ui/button';
import { Card } from '@tidepool/shared/ui/panel';
import { ArrowRight, Check, Circle, CircleHelp } from 'lucide-react';
import { useEffect } from 'react';
import { Link } from 'wouter';
import { useRights } from '../me';
import { useText, type Key } from '../messages';
import { useEmployeeCounts, useHealthCounts, useReady, useServerList } from './queries';

/** What was open at the last visit, so that the page has its shape before the answers come. */
const OPEN = 'tidepool.first-run';
const FINISHED = 'yes';

interface Step {
  id: string;
  text: Key;
  hint: Key;
  href: string;
  /** Who may not do it gets no button. */
  needs?: Permission;
  /** Unknown until the answer is there. */
  done: boolean | undefined;
}

export function FirstRun() {
  const { t } = useText();
  const { may, mayNot } = useRights();
  const servers = useServerList();
  const health = useHealthCounts();
  const employees = useEmployeeCounts();
  const ready = useReady();
  const known = servers.data?.list;
  const instances = health.data && Object.values(health.data).reduce((sum, count) => sum + count, 0);
  const all: Step[] = [
    {
      id: 'server',
      text: 'first.server',
      hint: 'first.serverHint',
      href: '/servers?new=1',
      needs: 'servers.manage',
      done: known && known.length > 0,
    },
    {
      id: 'ssh',
      text: 'first.ssh',
      hint: 'first.sshHint',
      href: known?.[0] ? `/servers/${encodeURIComponent(known[0].id)}` : '/servers',
      needs: 'servers.manage',
      // A pinned host key is the trace of a contact; the machine itself needs none.
      done: known?.some((server) => server.host === 'local' || server.host_key !== ''),
    },
    {
      id: 'gateway',
      text: 'first.gateway',
      hint: 'first.gatewayHint',
      href: '/settings',
      done: ready.data === undefined ? undefined : ready.data.gateway.status === 'ok',
    },
    {
      id: 'log',
      text: 'first.log',
      hint: 'first.logHint',
      href: '/settings',
      done: ready.data === undefined ? undefined : ready.data.log.status === 'ok',
    },
    {
      id: 'instance',
      text: 'first.instance',
      hint: 'first.instanceHint',
      href: '/instances?new=1',
      needs: 'instances.manage',
      done: instances === undefined ? undefined : instances > 0,
    },
    {
      id: 'employee',
      text: 'first.employee',
      hint: 'first.employeeHint',
      href: '/users?new=1',
      needs: 'people.manage',
      done: employees.data && employees.data.all > 0,
    },
  ];
  // Whoever may not see people never learns whether there are some.
  const steps = all.filter(({ id }) => id !== 'employee' || !mayNot('people.read'));
  const answered = steps.every((step) => step.done !== undefined);
  const finished = steps.every((step) => step.done);
  const open = steps.filter((step) => step.done === false).map(({ id }) => id);
  const openText = finished ? FINISHED : open.join(' ');
  useEffect(() => {
    if (answered) writeStored(OPEN, openText);
  }, [answered, openText]);
  const before = readStored(OPEN);
  if (answered ? finished : before === FINISHED) return null;
  // Until the answers are there, the hints have the places that they had last time.
  const hinted = answered ? open : (before ?? '').split(' ');
  const next = steps.find((step) => step.done === false);
  return (
    <Card title={t('first.title')} className="mb-5">
      <p className={`-mt-2 mb-4 text-sm text-muted ${answered ? '' : 'invisible'}`}>
        {t('first.lead', { done: steps.filter((step) => step.done).length, all: steps.length })}
      </p>
      <ol className="grid gap-x-8 gap-y-1 lg:grid-cols-2">
        {steps.map((step) => (
          <li key={step.id} className="flex items-start gap-3 py-1.5">
            <StepMark done={step.done} />
            <div className="min-w-0 flex-1">
              <p className={step.done === false ? 'font-medium' : 'text-muted'}>
                {t(step.text)}
                {step.done !== undefined && (
                  <span className="sr-only"> {t(step.done ? 'first.done' : 'first.open')}</span>
                )}
              </p>
              {hinted.includes(step.id) && (
                <p className={`text-sm text-muted ${step.done === false ? '' : 'invisible'}`}>
                  {t(step.hint)}
                </p>
              )}
            </div>
            {step === next && (step.needs === undefined || may(step.needs)) && (
              <Link href={step.href} className={buttonClass('primary', '', 'small')}>
                {t('first.go')}
                <ArrowRight className="size-4" aria-hidden="true" />
              </Link>
            )}
          </li>
        ))}
      </ol>
    </Card>
  );
}

function StepMark({ done }: { done: boolean | undefined }) {
  const look = 'mt-0.5 size-5 shrink-0';
  if (done === undefined) return <CircleHelp className={`${look} text-muted`} aria-hidden="true" />;
  return done ? (
    <Check className={`${look} rounded-full bg-success-soft p-0.5 text-success`} aria-hidden="true" />
  ) : (
    <Circle className={`${look} text-control`} aria-hidden="true" />
  );
}
