// The form of a server, for a new one and for changes.
import { useQueryClient } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { Field } from '@tidepool/shared/ui/field';
import { fieldText } from '@tidepool/shared/ui/form';
import { readNumbers } from '@tidepool/shared/ui/number';
import { NumberField } from '@tidepool/shared/ui/number-field';
import { SelectField } from '@tidepool/shared/ui/select';
import { CheckField, TextArea } from '@tidepool/shared/ui/text-area';
import { toast } from '@tidepool/shared/ui/toast';
import { api } from '../api';
import { useText } from '../messages';
import { changedFields } from '../parts/changed-fields';
import { FormDialog } from '../parts/form-dialog';
import type { Server } from '../records';

const NUMBERS = { ssh_port: { min: 1, max: 65_535 } };

interface ServerFormProps {
  /** Absent for a new one. */
  server?: Server;
  onClose: () => void;
  onDone?: (server: Server) => void;
}

export function ServerForm({ server, onClose, onDone }: ServerFormProps) {
  const i18n = useText();
  const { t } = i18n;
  const client = useQueryClient();
  return (
    <FormDialog<Server>
      title={server ? t('servers.editTitle', { name: server.name }) : t('servers.add')}
      lead={server ? undefined : t('servers.addLead')}
      submit={t(server ? 'dialog.save' : 'servers.add')}
      onClose={onClose}
      onDone={(saved) => {
        void client.invalidateQueries({ queryKey: ['servers'] });
        toast('success', t('servers.saved', { name: saved.name }));
        onDone?.(saved);
      }}
      send={(data) => {
        const body = {
          name: fieldText(data, 'name').trim(),
          host: fieldText(data, 'host').trim(),
          ...readNumbers(data, NUMBERS, i18n),
          ssh_user: fieldText(data, 'ssh_user').trim(),
          ssh_key_path: fieldText(data, 'ssh_key_path').trim(),
          // Empty it is left out, and the stored key stays: null would remove it, which `SshKeyFact` asks about first.
          ssh_key: fieldText(data, 'ssh_key') || undefined,
          expected_host_key: fieldText(data, 'expected_host_key').trim(),
          base_dir: fieldText(data, 'base_dir').trim(),
          notes: fieldText(data, 'notes'),
        };
        if (!server)
          return unwrap(
            api.POST('/servers', { body: { ...body, id: fieldText(data, 'id').trim() || undefined } }),
          );
        const patch = {
          ...body,
          status: fieldText(data, 'status') === 'disabled' ? ('disabled' as const) : ('active' as const),
          forget_host_key: data.has('forget_host_key') || undefined,
        };
        return unwrap(
          api.PATCH('/servers/{id}', {
            params: { path: { id: server.id } },
            body: changedFields<typeof patch>(server, patch),
          }),
        );
      }}
    >
      {(refused) => (
        <>
          <div className="grid gap-4 sm:grid-cols-2">
            <Field
              label={t('servers.name')}
              name="name"
              required
              defaultValue={server?.name}
              error={refused('name')}
            />
            {!server && (
              <Field label={t('servers.id')} name="id" hint={t('servers.idHint')} error={refused('id')} />
            )}
            <Field
              label={t('servers.host')}
              name="host"
              required
              defaultValue={server?.host}
              hint={t('servers.hostHint')}
              error={refused('host')}
            />
            <NumberField
              label={t('servers.port')}
              name="ssh_port"
              spec={NUMBERS.ssh_port}
              value={server?.ssh_port ?? 22}
              error={refused('ssh_port')}
            />
            <Field
              label={t('servers.user')}
              name="ssh_user"
              defaultValue={server?.ssh_user ?? 'root'}
              error={refused('ssh_user')}
            />
            <Field
              label={t('servers.base')}
              name="base_dir"
              defaultValue={server?.base_dir ?? '/srv/assistants'}
              error={refused('base_dir')}
            />
          </div>
          <Field
            label={t('servers.keyPath')}
            name="ssh_key_path"
            defaultValue={server?.ssh_key_path}
            hint={t('servers.keyPathHint')}
            error={refused('ssh_key_path')}
          />
          <TextArea
            label={t('servers.key')}
            name="ssh_key"
            mono
            rows={3}
            autoComplete="off"
            hint={t(server?.has_ssh_key ? 'servers.keyKept' : 'servers.keyHint')}
            error={refused('ssh_key')}
          />
          <TextArea
            label={t('servers.expected')}
            name="expected_host_key"
            mono
            rows={2}
            autoComplete="off"
            defaultValue={server?.expected_host_key}
            hint={t('servers.expectedHint')}
            error={refused('expected_host_key')}
          />
          <TextArea label={t('instances.notes')} name="notes" rows={2} defaultValue={server?.notes} />
          {server && (
            <>
              <SelectField
                label={t('servers.status')}
                name="status"
                defaultValue={server.status}
                hint={t('servers.statusHint')}
                choices={[
                  { value: 'active', label: t('servers.active') },
                  { value: 'disabled', label: t('servers.disabled') },
                ]}
              />
              {server.host_key !== '' && (
                <CheckField
                  label={t('servers.forget')}
                  hint={t('servers.forgetHint')}
                  name="forget_host_key"
                />
              )}
            </>
          )}
        </>
      )}
    </FormDialog>
  );
}
