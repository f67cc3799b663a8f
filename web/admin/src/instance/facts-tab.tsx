// What an instance is: where it runs, whose it is, its secrets on demand; and the forms that change that.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { errorText } from '@tidepool/shared/api/error-text';
import { RelativeTime } from '@tidepool/shared/i18n/time';
import { Badge } from '@tidepool/shared/ui/badge';
import { Button } from '@tidepool/shared/ui/button';
import { Combobox, type Found } from '@tidepool/shared/ui/combobox';
import { Confirm } from '@tidepool/shared/ui/confirm';
import { Field } from '@tidepool/shared/ui/field';
import { fieldText } from '@tidepool/shared/ui/form';
import { readNumbers } from '@tidepool/shared/ui/number';
import { NumberField } from '@tidepool/shared/ui/number-field';
import { Facts, NotSet } from '@tidepool/shared/ui/panel';
import { SelectField } from '@tidepool/shared/ui/select';
import { TextArea } from '@tidepool/shared/ui/text-area';
import { toast } from '@tidepool/shared/ui/toast';
import { Pencil, UserMinus, UserPlus } from 'lucide-react';
import { useState } from 'react';
import { Link } from 'wouter';
import { api } from '../api';
import { useFormat } from '../format';
import { useRights } from '../me';
import { useText } from '../messages';
import { isOnNoServer } from '../parts/cell';
import { changedFields } from '../parts/changed-fields';
import { Email } from '../parts/email';
import { FormDialog } from '../parts/form-dialog';
import { GATEWAY_PORT, useModels } from '../parts/models';
import { findUsers } from '../parts/pickers';
import { isOffered } from '../parts/runs-as';
import { Secret } from '../parts/secret';
import type { InstanceDetail } from '../records';
import { assign, readToken } from './actions';
import { HeartbeatStrip } from './heartbeat';
import { NotOnServer } from './place';
import { usePlaceText } from './place-texts';

export function FactsTab({ instance }: { instance: InstanceDetail }) {
  const { t, number } = usePlaceText();
  const format = useFormat();
  const { may } = useRights();
  const [editing, setEditing] = useState(false);
  return (
    <div className="space-y-7">
      <NotOnServer instance={instance} />
      <Owner instance={instance} />
      <HeartbeatStrip instance={instance} />
      <section>
        <div className="mb-3 flex items-center">
          <h3 className="flex-1 text-sm font-semibold">{t('instances.facts')}</h3>
          {may('instances.manage') && (
            <Button size="small" onClick={() => setEditing(true)}>
              <Pencil className="size-4" aria-hidden="true" />
              {t('instances.edit')}
            </Button>
          )}
        </div>
        <Facts
          rows={[
            {
              name: t('instances.server'),
              value: (
                <Link
                  href={`/servers/${encodeURIComponent(instance.server_id)}`}
                  className="rounded text-accent hover:underline"
                >
                  {instance.server_name}
                </Link>
              ),
            },
            { name: t('instances.model'), value: instance.model || <NotSet /> },
            {
              name: t('instances.url'),
              value: (
                <>
                  <code className="font-mono text-sm break-all">{instance.gateway_url}</code>
                  {instance.unproved_address && (
                    <p className="mt-1 text-sm text-warning">{t('instances.unproved')}</p>
                  )}
                </>
              ),
            },
            {
              name: t('instances.token'),
              value: (
                <Secret
                  label={t('instances.token')}
                  mask={instance.gateway_token}
                  reveal={may('instances.secrets') ? () => readToken(instance.id) : undefined}
                />
              ),
            },
            {
              name: t('instances.key'),
              value: instance.key ? (
                <Badge tone={instance.key.enabled ? 'good' : 'bad'}>
                  {t(instance.key.enabled ? 'keys.opens' : 'keys.closed')}
                </Badge>
              ) : (
                <span className="text-muted">{t('instances.noKey')}</span>
              ),
            },
            {
              name: t('instances.checked'),
              value: instance.last_health_at ? (
                <RelativeTime at={instance.last_health_at} />
              ) : (
                t('instances.never')
              ),
            },
            { name: t('instances.fails'), value: number(instance.health_fail_count) },
            {
              name: t('instances.used'),
              value: t('instances.usedValue', {
                requests: number(instance.total_requests),
                tokens: format.short(instance.total_tokens),
              }),
            },
            {
              name: t('instances.home'),
              value: instance.home ? (
                <code className="font-mono text-sm break-all">{instance.home}</code>
              ) : instance.runner === 'address' ? (
                <NotSet />
              ) : (
                t('instances.default')
              ),
            },
            ...(instance.own_llm ? [{ name: t('instances.models'), value: t('instances.ownLlm') }] : []),
            {
              name: t('instances.runsAs'),
              value: (
                <>
                  {instance.runs_as && (
                    <code className="font-mono text-sm break-all">{instance.runs_as}</code>
                  )}
                  <span className={`block text-sm ${isOffered(instance) ? 'text-muted' : 'text-warning'}`}>
                    {t(`instances.isolation.${instance.isolation}`)}
                  </span>
                </>
              ),
            },
            {
              name: t('place.runner'),
              value: isOnNoServer(instance) ? (
                <span className="text-muted">{t('place.runnerNone')}</span>
              ) : (
                <>
                  {t(`place.runner.${instance.runner}`)}
                  <RunnerName instance={instance} />
                </>
              ),
            },
            { name: t('instances.createdAt'), value: <RelativeTime at={instance.created_at} /> },
            {
              name: t('instances.notes'),
              value: instance.notes ? (
                <span className="whitespace-pre-wrap">{instance.notes}</span>
              ) : (
                <NotSet />
              ),
            },
          ]}
        />
      </section>
      {may('people.read') && <History instance={instance} />}
      {editing && <EditInstance instance={instance} onClose={() => setEditing(false)} />}
    </div>
  );
}

/** What the server calls what runs it. */
function RunnerName({ instance }: { instance: InstanceDetail }) {
  const { id, runner, unit, container_id: container } = instance;
  const name = runner === 'unit' ? unit || `openclaw-${id}` : runner === 'container' ? container : unit;
  return name !== '' && <code className="block font-mono text-sm break-all">{name}</code>;
}

function Owner({ instance }: { instance: InstanceDetail }) {
  const i18n = useText();
  const { t } = i18n;
  const client = useQueryClient();
  const { may } = useRights();
  const mayAssign = may('people.manage');
  const mayAssignAny = may('instances.assign_unisolated');
  const [asking, setAsking] = useState(false);
  const [user, setUser] = useState<Found | null>(null);
  const changed = () => {
    void client.invalidateQueries({ queryKey: ['instances'] });
    void client.invalidateQueries({ queryKey: ['users'] });
  };
  const give = useMutation({
    mutationFn: (id: string) => assign(instance.id, id),
    onSuccess: () => {
      setUser(null);
      changed();
    },
    onError: (error) => toast('error', errorText(error, i18n)),
  });
  if (instance.pool_entry) {
    return (
      <p className="rounded-lg bg-sunken px-4 py-3 text-sm">
        {instance.assigned_email
          ? t('instances.pooledBy', { email: instance.assigned_email })
          : t(
              instance.pool_entry.status === 'maintenance'
                ? 'instances.pooledMaintenance'
                : 'instances.pooledIdle',
            )}{' '}
        {may('people.read') && (
          <Link href="/professions?tab=pool" className="rounded font-medium text-accent hover:underline">
            {t('instances.toPool')}
          </Link>
        )}
      </p>
    );
  }
  if (instance.assigned_email) {
    return (
      <div className="flex flex-wrap items-center gap-3 rounded-lg bg-sunken px-4 py-3">
        <p className="min-w-0 flex-1">
          <span className="text-sm text-muted">{t('instances.assigned')}</span>
          <br />
          {may('people.read') ? (
            <Link
              href={`/users?open=${encodeURIComponent(instance.assigned_user_id ?? '')}`}
              className="rounded font-medium hover:text-accent"
            >
              {instance.assigned_email}
            </Link>
          ) : (
            <span className="font-medium">{instance.assigned_email}</span>
          )}
        </p>
        {mayAssign && (
          <Button size="small" look="danger" onClick={() => setAsking(true)}>
            <UserMinus className="size-4" aria-hidden="true" />
            {t('instances.takeBack')}
          </Button>
        )}
        {asking && (
          <Confirm
            title={t('instances.takeBackTitle', { name: instance.name })}
            confirm={t('instances.takeBack')}
            run={() => assign(instance.id, null)}
            onDone={changed}
            onClose={() => setAsking(false)}
          >
            <p>{t('instances.takeBackText', { email: instance.assigned_email })}</p>
            {!isOffered(instance) && !mayAssignAny && <p>{t('instances.takeBackOnly')}</p>}
          </Confirm>
        )}
      </div>
    );
  }
  if (!mayAssign || (!isOffered(instance) && !mayAssignAny)) {
    return (
      <p className="rounded-lg bg-sunken px-4 py-3 text-sm">
        {isOffered(instance) ? t('instances.isFree') : t(`instances.isolation.${instance.isolation}`)}
      </p>
    );
  }
  return (
    <div className="flex flex-wrap items-end gap-3 rounded-lg bg-sunken px-4 py-3">
      {!isOffered(instance) && (
        <p className="basis-full text-sm text-warning">{t(`instances.isolation.${instance.isolation}`)}</p>
      )}
      <div className="min-w-0 flex-1 basis-60">
        <Combobox
          label={t('instances.assignTo')}
          placeholder={t('users.search')}
          chosen={user}
          onChoose={setUser}
          queryKey={['users']}
          search={findUsers}
        />
      </div>
      <Button
        look="primary"
        busy={give.isPending}
        disabled={user === null}
        onClick={() => user && give.mutate(user.value)}
      >
        <UserPlus className="size-4" aria-hidden="true" />
        {t('instances.assign')}
      </Button>
    </div>
  );
}

function History({ instance }: { instance: InstanceDetail }) {
  const { t } = useText();
  if (instance.bindings.length === 0) return null;
  return (
    <section>
      <h3 className="mb-2 text-sm font-semibold">{t('instances.history')}</h3>
      <ul className="space-y-1.5 text-sm">
        {instance.bindings.map((binding) => (
          <li key={`${binding.user_id}-${binding.created_at}`} className="flex flex-wrap gap-x-2">
            <Link
              href={`/users?open=${encodeURIComponent(binding.user_id)}`}
              className="rounded text-accent hover:underline"
            >
              <Holder id={binding.user_id} />
            </Link>
            <span className="text-muted">
              {t(`origin.${binding.origin}`)} · <RelativeTime at={binding.created_at} />
              {binding.ended_at && (
                <>
                  {' – '}
                  <RelativeTime at={binding.ended_at} />
                </>
              )}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Somebody by the e-mail; by the id until that is known. */
function Holder({ id }: { id: string }) {
  const user = useQuery({
    queryKey: ['users', 'one', id],
    queryFn: () => unwrap(api.GET('/users/{id}', { params: { path: { id } } })),
    staleTime: 60_000,
  });
  return user.data ? <Email address={user.data.email} /> : id;
}

const NUMBERS = { gateway_port: GATEWAY_PORT };

export function EditInstance({ instance, onClose }: { instance: InstanceDetail; onClose: () => void }) {
  const i18n = useText();
  const { t } = i18n;
  const client = useQueryClient();
  const models = useModels();
  const known = (models.data?.list ?? []).map((model) => model.id);
  // The model that it has stays chosen, whether or not the list has it; it may have none.
  const ids = known.includes(instance.model) ? known : [instance.model, ...known];
  return (
    <FormDialog
      title={t('instances.editTitle', { name: instance.name })}
      submit={t('dialog.save')}
      onClose={onClose}
      onDone={() => void client.invalidateQueries({ queryKey: ['instances'] })}
      send={(data) => {
        const body = {
          name: fieldText(data, 'name').trim(),
          model: fieldText(data, 'model'),
          ...readNumbers(data, NUMBERS, i18n),
          gateway_url: fieldText(data, 'gateway_url').trim(),
          notes: fieldText(data, 'notes'),
          gateway_token: fieldText(data, 'gateway_token') || undefined,
        };
        return unwrap(
          api.PATCH('/assistant-instances/{id}', {
            params: { path: { id: instance.id } },
            body: changedFields<typeof body>(instance, body),
          }),
        );
      }}
    >
      {(refused) => (
        <>
          <Field
            label={t('instances.name')}
            name="name"
            defaultValue={instance.name}
            error={refused('name')}
          />
          <SelectField
            key={ids.length}
            label={t('instances.model')}
            name="model"
            defaultValue={instance.model}
            choices={ids.map((id) => ({ value: id, label: id || t('account.notSet') }))}
          />
          <NumberField
            label={t('instances.port')}
            name="gateway_port"
            spec={NUMBERS.gateway_port}
            value={instance.gateway_port}
            error={refused('gateway_port')}
          />
          <Field
            label={t('instances.url')}
            name="gateway_url"
            defaultValue={instance.gateway_url}
            error={refused('gateway_url')}
          />
          <Field
            label={t('instances.newToken')}
            name="gateway_token"
            hint={t('instances.newTokenHint')}
            autoComplete="off"
            error={refused('gateway_token')}
          />
          <TextArea label={t('instances.notes')} name="notes" rows={3} defaultValue={instance.notes} />
        </>
      )}
    </FormDialog>
  );
}
