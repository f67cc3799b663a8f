// The form for a new instance. A gateway that has its port on the server already is adopted; with "provision" it is made there if
// there is none. What was found is said afterwards.
import { useQueryClient } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { Button } from '@tidepool/shared/ui/button';
import { Dialog } from '@tidepool/shared/ui/dialog';
import { Field } from '@tidepool/shared/ui/field';
import { fieldText } from '@tidepool/shared/ui/form';
import { readNumbers } from '@tidepool/shared/ui/number';
import { Notice } from '@tidepool/shared/ui/notice';
import { NumberField } from '@tidepool/shared/ui/number-field';
import { SelectField } from '@tidepool/shared/ui/select';
import { CheckField, TextArea } from '@tidepool/shared/ui/text-area';
import { useState } from 'react';
import { api } from '../api';
import { useMay } from '../me';
import { useServerList } from '../overview/queries';
import { isOnNoServer } from '../parts/cell';
import { FormDialog } from '../parts/form-dialog';
import { GATEWAY_PORT, useModels } from '../parts/models';
import type { InstanceDetail, MadeInstance } from '../records';
import { useTaskToast } from '../task-drawer';
import { usePlaceText, type PlaceKey } from './place-texts';

const SAID: Record<MadeInstance['found'], PlaceKey> = {
  adopted: 'create.adopted',
  answers: 'create.answers',
  provisioning: 'create.provisioning',
  nothing: 'instances.created',
  not_looked: 'instances.created',
};

/** Whether it is on no server, and no task brings it there. */
const isLeft = (made: MadeInstance) => isOnNoServer(made) && made.found !== 'provisioning';

interface CreateProps {
  onClose: () => void;
  /** It is to be shown. */
  onDone: (made: InstanceDetail) => void;
}

export function CreateInstance({ onClose, onDone }: CreateProps) {
  const i18n = usePlaceText();
  const { t } = i18n;
  const client = useQueryClient();
  const notify = useTaskToast();
  const servers = useServerList();
  const models = useModels();
  const mayPlace = useMay('instances.place');
  const mayAdopt = useMay('instances.adopt');
  const [isMain, setMain] = useState(false);
  const [left, setLeft] = useState<MadeInstance | null>(null);
  const numbers = { gateway_port: { ...GATEWAY_PORT, none: t('instances.nextPort') } };
  if (left) {
    const open = () => {
      onClose();
      onDone(left);
    };
    return <LeftOnNoServer made={left} onClose={onClose} onOpen={open} />;
  }
  return (
    <FormDialog<MadeInstance>
      title={t('instances.add')}
      lead={t('instances.addLead')}
      submit={t('instances.create')}
      onClose={onClose}
      staysOpen={isLeft}
      onDone={(made) => {
        void client.invalidateQueries({ queryKey: ['instances'] });
        void client.invalidateQueries({ queryKey: ['tasks'] });
        if (isLeft(made)) {
          setLeft(made);
          return;
        }
        notify(made.task_id, t(SAID[made.found], { name: made.name }));
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
              // Without the box, which not every role has, nothing is looked for.
              keeps_llm: !mayAdopt || data.has('keeps_llm'),
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
          {!isMain && mayAdopt && (
            <CheckField
              label={t('create.keepsLlm')}
              hint={t('create.keepsLlmHint')}
              name="keeps_llm"
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

interface LeftOnNoServerProps {
  made: MadeInstance;
  onClose: () => void;
  onOpen: () => void;
}

/** The record is there, but nobody can use it yet: says what was found, and leads to where that can be changed. */
function LeftOnNoServer({ made, onClose, onOpen }: LeftOnNoServerProps) {
  const { t } = usePlaceText();
  const { name, server_name: server, found_detail: detail } = made;
  return (
    <Dialog
      open
      onClose={onClose}
      title={t('create.leftTitle', { name })}
      foot={
        <>
          <Button onClick={onClose}>{t('dialog.close')}</Button>
          <Button look="primary" onClick={onOpen}>
            {t('create.open', { name })}
          </Button>
        </>
      }
    >
      <div className="space-y-3 text-sm">
        <Notice tone="warning">
          <p className="wrap-anywhere">
            {detail == null ? t('create.notLooked', { server }) : t('place.nothing', { detail })}
          </p>
          <p>{t('create.left')}</p>
        </Notice>
        <p>{t('create.leftNext')}</p>
      </div>
    </Dialog>
  );
}
