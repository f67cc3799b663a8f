// What our records want of an instance beside what is on its server: what differs and since when, what will be done about
// it, and the ways to have that done now or not at all.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { errorText } from '@tidepool/shared/api/error-text';
import { exact, RelativeTime } from '@tidepool/shared/i18n/time';
import { Badge, Status } from '@tidepool/shared/ui/badge';
import { Button } from '@tidepool/shared/ui/button';
import { Confirm } from '@tidepool/shared/ui/confirm';
import { Notice } from '@tidepool/shared/ui/notice';
import { outcomeOf } from '@tidepool/shared/ui/outcome';
import { EmptyState } from '@tidepool/shared/ui/states';
import { toast } from '@tidepool/shared/ui/toast';
import { Hand, Play, RotateCw, Upload } from 'lucide-react';
import { useState, type ReactNode } from 'react';
import { api } from '../api';
import { useMay } from '../me';
import { QueryState } from '../parts/query-state';
import { Section } from '../parts/section';
import type { ForeignSetting, InstanceDetail, InstanceHold, InstanceState, StateField } from '../records';
import { useTaskToast } from '../task-drawer';
import { endHold, reconcile } from './actions';
import { useCompareText, type CompareKey } from './compare-texts';
import { HoldDialog } from './hold';
import { NotOnServer } from './place';
import { usePlaceText } from './place-texts';
import {
  effectText,
  fieldName,
  generationText,
  isDifferent,
  nextText,
  offered,
  stepsText,
  valueText,
} from './state-text';

/** More settings of somebody else than this are folded. */
const FOLD_FROM = 6;

export function StateTab({ instance }: { instance: InstanceDetail }) {
  const { t } = useCompareText();
  const mayManage = useMay('instances.manage');
  const isThere = instance.is_main || Boolean(instance.home);
  const state = useQuery({
    queryKey: ['state', instance.id],
    queryFn: () => unwrap(api.GET('/instances/{id}/state', { params: { path: { id: instance.id } } })),
    enabled: isThere,
    retry: false,
    staleTime: 60_000,
  });
  // An instance that cannot be compared can be held all the same.
  const until = state.data ? state.data.hold?.until : instance.held_until;
  const begin = mayManage && !until && <HoldButton instance={instance} label={t('hold.begin')} />;
  return (
    <div className="space-y-7">
      <NotOnServer instance={instance} />
      {until && <Held instance={instance} until={until} hold={state.data?.hold ?? undefined} />}
      {isThere ? (
        <QueryState query={state}>
          {(data) => (
            <>
              <Summary instance={instance} state={data}>
                {begin}
              </Summary>
              {data.fields.length > 0 && <Fields fields={data.fields} />}
              {data.foreign.length > 0 && <Foreign settings={data.foreign} />}
              <p className="flex flex-wrap items-center gap-2 text-sm text-muted">
                {generationText(data, t)}
                {data.untouched != null && (
                  <Badge tone={data.untouched ? 'good' : 'warn'}>
                    {t('compare.configuration')}: {t(data.untouched ? 'config.untouched' : 'config.touched')}
                  </Badge>
                )}
              </p>
            </>
          )}
        </QueryState>
      ) : (
        <NothingToCompare instance={instance} />
      )}
      {state.data === undefined && !state.isLoading && begin}
    </div>
  );
}

function NothingToCompare({ instance }: { instance: InstanceDetail }) {
  const { t } = usePlaceText();
  if (instance.runner === 'address')
    return <EmptyState title={t('place.elsewhere')}>{t('place.elsewhereText')}</EmptyState>;
  return <EmptyState title={t('place.notThere')}>{t('place.notThereText')}</EmptyState>;
}

/** Has everything read again that shows parts of it. */
function useChanged() {
  const client = useQueryClient();
  return () => {
    for (const root of ['state', 'instances', 'tasks']) void client.invalidateQueries({ queryKey: [root] });
  };
}

function useFailure() {
  const i18n = useCompareText();
  return (error: unknown) =>
    toast(outcomeOf(error) === 'unknown' ? 'unknown' : 'error', errorText(error, i18n));
}

/** The hold that there is: until when, by whom and why as far as that is known, and its end. */
function Held({ instance, until, hold }: { instance: InstanceDetail; until: string; hold?: InstanceHold }) {
  const { t, locale } = useCompareText();
  const mayManage = useMay('instances.manage');
  const changed = useChanged();
  const onError = useFailure();
  const end = useMutation({
    mutationFn: () => endHold(instance.id),
    onSuccess: () => toast('success', t('hold.ended', { name: instance.name })),
    onError,
    onSettled: changed,
  });
  return (
    <div className="space-y-3">
      <Notice tone="info">
        <p className="font-medium">{t('hold.until', { time: exact(Date.parse(until), locale) })}</p>
        {hold && <p className="wrap-anywhere">{t('hold.by', { by: hold.by, reason: hold.reason })}</p>}
        <p>{t('hold.text')}</p>
      </Notice>
      {mayManage && (
        <div className="flex flex-wrap gap-2">
          <HoldButton instance={instance} label={t('hold.change')} reason={hold?.reason} />
          <Button size="small" busy={end.isPending} onClick={() => end.mutate()}>
            {!end.isPending && <Play className="size-4" aria-hidden="true" />}
            {t('hold.end')}
          </Button>
        </div>
      )}
    </div>
  );
}

interface HoldButtonProps {
  instance: InstanceDetail;
  label: string;
  reason?: string;
}

function HoldButton({ instance, label, reason }: HoldButtonProps) {
  const { t } = useCompareText();
  const changed = useChanged();
  const [asking, setAsking] = useState(false);
  return (
    <>
      <Button size="small" onClick={() => setAsking(true)}>
        <Hand className="size-4" aria-hidden="true" />
        {label}
      </Button>
      {asking && (
        <HoldDialog
          instance={instance}
          reason={reason}
          onDone={() => {
            changed();
            toast('success', t('hold.begun', { name: instance.name }));
          }}
          onClose={() => setAsking(false)}
        />
      )}
    </>
  );
}

/** A text with a time in it, which goes on being true. */
function Timed({ text, at }: { text: CompareKey; at: string }) {
  const { t } = useCompareText();
  const [before, after] = t(text).split('{time}');
  return (
    <span>
      {before}
      <RelativeTime at={at} />
      {after}
    </span>
  );
}

interface SummaryProps {
  instance: InstanceDetail;
  state: InstanceState;
  /** A button beside those that bring it. */
  children: ReactNode;
}

function Summary({ instance, state, children }: SummaryProps) {
  const { t, number } = useCompareText();
  const mayManage = useMay('instances.manage');
  return (
    <Section
      title={t('compare.title')}
      actions={
        <>
          {mayManage && <Bring instance={instance} state={state} />}
          {children}
        </>
      }
    >
      <div className="space-y-3 text-sm">
        {state.unreachable == null ? <Found state={state} /> : <Recorded state={state} />}
        <dl>
          <dt className="text-muted">{t('compare.next')}</dt>
          <dd className="wrap-anywhere">{nextText(state, t)}</dd>
        </dl>
        {state.failures > 0 && (
          <Notice tone="error">
            <p>
              {state.failures === 1
                ? t('compare.failedOnce')
                : t('compare.failed', { count: number(state.failures) })}
            </p>
            <p className="wrap-anywhere whitespace-pre-wrap">{state.error}</p>
          </Notice>
        )}
      </div>
    </Section>
  );
}

/** How much differs now, and since when. */
function Found({ state }: { state: InstanceState }) {
  const { t, number } = useCompareText();
  const count = state.fields.filter(isDifferent).length;
  return (
    <p className="flex flex-wrap items-center gap-x-3 gap-y-1">
      <Status tone={count === 0 ? 'good' : 'warn'}>
        <span className="font-medium whitespace-normal">
          {count === 0
            ? t('compare.same')
            : count === 1
              ? t('compare.one')
              : t('compare.many', { count: number(count) })}
        </span>
      </Status>
      <span className="flex flex-wrap gap-x-3 text-muted">
        {count > 0 &&
          (state.differs_since ? (
            <Timed text="compare.since" at={state.differs_since} />
          ) : (
            t('compare.found')
          ))}
        {state.compared_at && <Timed text="compare.at" at={state.compared_at} />}
      </span>
    </p>
  );
}

/** What was known before the server could not be asked any more. */
function Recorded({ state }: { state: InstanceState }) {
  const { t } = useCompareText();
  const times = (
    <span className="flex flex-wrap gap-x-3 text-muted">
      {state.differs !== '' && state.differs_since && <Timed text="compare.since" at={state.differs_since} />}
      {state.compared_at && <Timed text="compare.at" at={state.compared_at} />}
    </span>
  );
  return (
    <>
      <Notice tone="warning">
        <span className="wrap-anywhere">{t('compare.unreachable', { reason: state.unreachable ?? '' })}</span>
      </Notice>
      {state.differs !== '' ? (
        <div>
          <p>{t('compare.recorded')}</p>
          <p className="my-1 rounded-lg bg-sunken p-3 font-mono text-xs wrap-anywhere">{state.differs}</p>
          {times}
        </div>
      ) : (
        <div>
          <p>{t(state.compared_at ? 'compare.recordedNone' : 'compare.recordedNever')}</p>
          {times}
        </div>
      )}
    </>
  );
}

function Bring({ instance, state }: { instance: InstanceDetail; state: InstanceState }) {
  const { t } = useCompareText();
  const [asking, setAsking] = useState(false);
  const notify = useTaskToast();
  const changed = useChanged();
  const onError = useFailure();
  const may = offered(state);
  const queued = (task: string) => notify(task, t('compare.queued', { name: instance.name }));
  const bring = useMutation({
    mutationFn: () => reconcile(instance.id, false),
    onSuccess: ({ task_id }) => queued(task_id),
    onError,
    onSettled: changed,
  });
  return (
    <>
      {may.hot && (
        <Button size="small" look="primary" busy={bring.isPending} onClick={() => bring.mutate()}>
          {!bring.isPending && <Upload className="size-4" aria-hidden="true" />}
          {t('compare.bring')}
        </Button>
      )}
      {may.restart && (
        <Button size="small" look="danger" onClick={() => setAsking(true)}>
          <RotateCw className="size-4" aria-hidden="true" />
          {t('compare.bringRestart')}
        </Button>
      )}
      {asking && (
        <Confirm
          title={t('compare.bringTitle', { name: instance.name })}
          confirm={t('compare.bringRestart')}
          run={async () => queued((await reconcile(instance.id, true)).task_id)}
          onDone={changed}
          onClose={() => setAsking(false)}
        >
          <Notice tone="warning">{t('compare.bringText')}</Notice>
          {state.steps.length > 0 && <p>{t('compare.bringSteps', { steps: stepsText(state.steps, t) })}</p>}
          {instance.assigned_email && <p>{t('cell.interrupts', { email: instance.assigned_email })}</p>}
          {state.hold && <p>{t('compare.bringHeld')}</p>}
        </Confirm>
      )}
    </>
  );
}

/** Side by side; on a phone one below the other, each with its own label. */
const COLUMNS = 'grid gap-x-4 gap-y-1 border-s-4 px-3 py-2.5 sm:grid-cols-[9rem_minmax(0,1fr)_minmax(0,1fr)]';

function Fields({ fields }: { fields: readonly StateField[] }) {
  const { t } = useCompareText();
  return (
    <div className="overflow-hidden rounded-lg border border-line text-sm">
      <div
        aria-hidden="true"
        className={`border-s-transparent bg-sunken text-muted max-sm:hidden ${COLUMNS}`}
      >
        <span className="col-start-2">{t('compare.records')}</span>
        <span>{t('compare.server')}</span>
      </div>
      <ul aria-label={t('compare.title')} className="divide-y divide-line">
        {fields.map((field) => (
          <FieldRow key={field.name} field={field} />
        ))}
      </ul>
    </div>
  );
}

function FieldRow({ field }: { field: StateField }) {
  const { t } = useCompareText();
  const differs = isDifferent(field);
  const name = fieldName(field.name, t);
  return (
    <li className={`${COLUMNS} ${differs ? 'border-s-warning' : 'border-s-transparent'}`}>
      {name === null ? (
        <code className="font-mono text-xs leading-5 font-medium wrap-anywhere">{field.name}</code>
      ) : (
        <span className="font-medium">{name}</span>
      )}
      <Value label={t('compare.records')} field={field} value={field.desired} />
      <Value label={t('compare.server')} field={field} value={field.observed} strong={differs} />
      {differs && (
        <span className="text-warning sm:col-span-2 sm:col-start-2">
          {effectText(field.effect, t)}
          {field.desired === field.observed && ` ${t('compare.masked')}`}
        </span>
      )}
    </li>
  );
}

interface ValueProps {
  label: string;
  field: StateField;
  value: string;
  strong?: boolean;
}

function Value({ label, field, value, strong = false }: ValueProps) {
  const { t, locale } = useCompareText();
  const text = valueText(field.name, value, t, locale);
  const look = strong ? 'font-medium' : '';
  let shown: ReactNode = <span className={look}>{text}</span>;
  if (text === null)
    shown = <code className={`font-mono text-xs wrap-anywhere whitespace-pre-wrap ${look}`}>{value}</code>;
  return (
    <span className="min-w-0">
      <span className="text-muted sm:sr-only">{label}: </span>
      {shown}
    </span>
  );
}

function Foreign({ settings }: { settings: readonly ForeignSetting[] }) {
  const { t, number } = useCompareText();
  const list = (
    <ul className="divide-y divide-line rounded-lg border border-line text-xs">
      {settings.map(({ path, value }) => (
        <li key={path} className="grid gap-x-4 px-3 py-2 sm:grid-cols-[minmax(0,1fr)_minmax(0,1fr)]">
          <code className="font-mono font-medium wrap-anywhere">{path}</code>
          <code className="font-mono wrap-anywhere whitespace-pre-wrap text-muted">{value}</code>
        </li>
      ))}
    </ul>
  );
  return (
    <Section title={t('compare.foreign')}>
      <p className="mb-2 text-sm text-muted">{t('compare.foreignText')}</p>
      {settings.length < FOLD_FROM ? (
        list
      ) : (
        <details>
          <summary className="mb-2 cursor-pointer rounded text-sm font-medium text-accent">
            {t('compare.foreignShow', { count: number(settings.length) })}
          </summary>
          {list}
        </details>
      )}
    </Section>
  );
}
