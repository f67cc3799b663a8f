// The form of a server, for a new one and for changes.
import { useQueryClient } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { Field } from '@tidepool/shared/ui/field';
import { fieldText } from '@tidepool/shared/ui/form';
import { SelectField } from '@tidepool/shared/ui/select';
import { CheckField, TextArea } from '@tidepool/shared/ui/text-area';
import { toast } from '@tidepool/shared/ui/toast';
import { api } from '../api';
import { useText } from '../messages';
import { FormDialog } from '../parts/form-dialog';
import type { Server } from '../records';

interface ServerFormProps {
  /** Absent for a new one. */
  server?: Server;
  onClose: () => void;
  onDone?: (server: Server) => void;
}

export function ServerForm({ server, onClose, onDone }: ServerFormProps) {
  const { t } = useText();
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
        const key = fieldText(data, 'ssh_key');
        const body = {
          name: fieldText(data, 'name').trim(),
          host: fieldText(data, 'host').trim(),
          ssh_port: Number(fieldText(data, 'ssh_port')) || 22,
          ssh_user: fieldText(data, 'ssh_user').trim() || 'root',
          ssh_key_path: fieldText(data, 'ssh_key_path').trim(),
          expected_host_key: fieldText(data, 'expected_host_key').trim(),
          base_dir: fieldText(data, 'base_dir').trim() || '/srv/assistants',
          notes: fieldText(data, 'notes'),
        };
        if (!server)
          return unwrap(
            api.POST('/servers', {
              body: { ...body, ssh_key: key === '' ? null : key, id: fieldText(data, 'id').trim() || null },
            }),
          );
        return unwrap(
          api.PATCH('/servers/{id}', {
            params: { path: { id: server.id } },
            body: {
              ...body,
              // An empty field keeps the stored key; null would take it away.
              ...(key !== '' && { ssh_key: key }),
              status: fieldText(data, 'status') === 'disabled' ? 'disabled' : 'active',
              forget_host_key: data.has('forget_host_key'),
            },
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
            <Field
              label={t('servers.port')}
              name="ssh_port"
              inputMode="numeric"
              defaultValue={server?.ssh_port ?? 22}
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
