// The form for a new instance; with "provision" it is also made on its server.
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { Field } from '@tidepool/shared/ui/field';
import { fieldText } from '@tidepool/shared/ui/form';
import { readNumbers } from '@tidepool/shared/ui/number';
import { NumberField } from '@tidepool/shared/ui/number-field';
import { SelectField } from '@tidepool/shared/ui/select';
import { CheckField, TextArea } from '@tidepool/shared/ui/text-area';
import { toast } from '@tidepool/shared/ui/toast';
import { useState } from 'react';
import { api } from '../api';
import { useMay } from '../me';
import { useText } from '../messages';
import { useServerList } from '../overview/queries';
import { FormDialog } from '../parts/form-dialog';
import type { InstanceDetail } from '../records';

/** As the API's document has it. */
export const GATEWAY_PORT = { min: 1024, max: 65_535 };

export function useModels() {
  return useQuery({ queryKey: ['models'], queryFn: () => unwrap(api.GET('/models')) });
}

interface CreateProps {
  onClose: () => void;
  onDone: (made: InstanceDetail) => void;
}

export function CreateInstance({ onClose, onDone }: CreateProps) {
  const i18n = useText();
  const { t } = i18n;
  const client = useQueryClient();
  const servers = useServerList();
  const models = useModels();
  const mayPlace = useMay('instances.place');
  const [isMain, setMain] = useState(false);
  const numbers = { gateway_port: { ...GATEWAY_PORT, none: t('instances.nextPort') } };
  return (
    <FormDialog<InstanceDetail>
      title={t('instances.add')}
      lead={t('instances.addLead')}
      submit={t('instances.create')}
      onClose={onClose}
      onDone={(made) => {
        void client.invalidateQueries({ queryKey: ['instances'] });
        void client.invalidateQueries({ queryKey: ['tasks'] });
        toast('success', t('instances.created', { name: made.name }));
        onDone(made);
      }}
      send={(data) => {
        const { gateway_port } = readNumbers(data, numbers, i18n);
        return unwrap(
          api.POST('/assistant-instances', {
            body: {
              id: fieldText(data, 'id').trim(),
              name: fieldText(data, 'name').trim(),
              server_id: fieldText(data, 'server_id'),
              model: fieldText(data, 'model'),
              gateway_port: gateway_port ?? undefined,
              gateway_url: fieldText(data, 'gateway_url').trim() || undefined,
              notes: fieldText(data, 'notes'),
              is_main: data.has('is_main'),
              provision: data.has('provision'),
            },
          }),
        );
      }}
    >
      {(refused) => (
        <>
          <div className="grid gap-4 sm:grid-cols-2">
            <Field label={t('instances.name')} name="name" required error={refused('name')} />
            <Field
              label={t('instances.id')}
              name="id"
              required
              hint={t('instances.idHint')}
              error={refused('id')}
            />
            <SelectField
              label={t('instances.server')}
              name="server_id"
              choices={(servers.data?.list ?? []).map((server) => ({ value: server.id, label: server.name }))}
            />
            <SelectField
              label={t('instances.model')}
              name="model"
              choices={(models.data?.list ?? [])
                .filter((model) => model.enabled)
                .map((model) => ({ value: model.id, label: model.id }))}
            />
            <NumberField
              label={t('instances.port')}
              name="gateway_port"
              spec={numbers.gateway_port}
              error={refused('gateway_port')}
            />
            <Field
              label={t('instances.url')}
              name="gateway_url"
              hint={t('instances.urlHint')}
              error={refused('gateway_url')}
            />
          </div>
          {!isMain && (
            <CheckField
              label={t('instances.provision')}
              hint={t('instances.provisionHint')}
              name="provision"
              defaultChecked
            />
          )}
          {mayPlace && (
            <CheckField
              label={t('instances.main')}
              hint={t('instances.mainHint')}
              name="is_main"
              checked={isMain}
              onChange={(event) => setMain(event.target.checked)}
            />
          )}
          <TextArea label={t('instances.notes')} name="notes" rows={2} />
        </>
      )}
    </FormDialog>
  );
}
