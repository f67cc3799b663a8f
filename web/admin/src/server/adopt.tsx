// Adopts gateways of a server: names and owners, then a preview of every change, then the result for each.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { errorText } from '@tidepool/shared/api/error-text';
import { Button } from '@tidepool/shared/ui/button';
import { Dialog } from '@tidepool/shared/ui/dialog';
import { Field } from '@tidepool/shared/ui/field';
import { Notice } from '@tidepool/shared/ui/notice';
import { outcomeOf } from '@tidepool/shared/ui/outcome';
import { useState } from 'react';
import { api } from '../api';
import { useMay } from '../me';
import type { DiscoveredGateway } from '../records';
import { AdoptCsv } from './adopt-csv';
import { Previews, Results } from './adopt-outcome';
import { useAdoptText } from './adopt-texts';
import { proposedId, shownName } from './discovered-text';
import type { Adoptee } from './match-csv';
import { ModelChoice, type ModelWish } from './model-choice';

interface Row {
  gateway: DiscoveredGateway;
  id: string;
  name: string;
  email: string;
}

function rows(gateways: readonly DiscoveredGateway[]): Row[] {
  const taken = new Set<string>();
  return gateways.map((gateway) => {
    const id = proposedId(gateway, taken);
    taken.add(id);
    return { gateway, id, name: id, email: gateway.email ?? '' };
  });
}

const adoptee = ({ gateway, id, name }: Row): Adoptee => ({
  key: gateway.key,
  unit: gateway.name,
  user: gateway.user,
  home: gateway.home,
  id,
  name,
});

interface AdoptDialogProps {
  server: string;
  gateways: readonly DiscoveredGateway[];
  /** Those of the server that cannot be adopted: they are left out, with their reasons. */
  left: readonly DiscoveredGateway[];
  onClose: () => void;
}

export function AdoptDialog({ server, gateways, left: leftNow, onClose }: AdoptDialogProps) {
  const i18n = useAdoptText();
  const { t, number } = i18n;
  const client = useQueryClient();
  const mayAssign = useMay('instances.assign_unisolated');
  const [list, setList] = useState(() => rows(gateways));
  // The server is asked again meanwhile; the result is about what was shown.
  const [left] = useState(leftNow);
  const [models, setModels] = useState<ModelWish>({ keepsLlm: true, restart: false });
  const body = () => ({
    list: list.map(({ gateway, id, name, email }) => ({
      key: gateway.key,
      id: id.trim(),
      name: name.trim(),
      email: (mayAssign && email.trim()) || null,
      keeps_llm: models.keepsLlm,
      restart: models.restart,
    })),
  });
  const params = { path: { id: server } };
  const preview = useMutation({
    mutationFn: () => unwrap(api.POST('/servers/{id}/adopt/preview', { params, body: body() })),
  });
  const adopt = useMutation({
    mutationFn: () => unwrap(api.POST('/servers/{id}/adopt', { params, body: body() })),
    onSettled: () => {
      for (const root of ['instances', 'servers']) void client.invalidateQueries({ queryKey: [root] });
    },
  });
  const back = () => {
    adopt.reset();
    preview.reset();
  };
  const set = (at: number, change: Partial<Row>) =>
    setList((before) => before.map((row, number) => (number === at ? { ...row, ...change } : row)));
  const previews = preview.data?.list;
  const count = previews?.filter((one) => one.refusal == null).length ?? 0;
  const error = adopt.error ?? preview.error;
  const isUnknown = adopt.error !== null && outcomeOf(adopt.error) === 'unknown';
  const [first] = list;
  const title =
    list.length === 1 && first
      ? t('adopt.dialogOne', { name: shownName(first.gateway) })
      : t('adopt.dialog', { count: number(list.length) });
  return (
    <Dialog
      open
      onClose={onClose}
      title={title}
      lead={t('adopt.dialogLead')}
      width="wide"
      foot={
        adopt.data ? (
          <Button look="primary" onClick={onClose}>
            {t('dialog.close')}
          </Button>
        ) : previews ? (
          <>
            <Button disabled={adopt.isPending} onClick={back}>
              {t('adopt.back')}
            </Button>
            <Button
              look="primary"
              busy={adopt.isPending}
              disabled={count === 0}
              onClick={() => adopt.mutate()}
            >
              {t('adopt.confirm', { count: number(count) })}
            </Button>
          </>
        ) : (
          <>
            <Button onClick={onClose}>{t('dialog.cancel')}</Button>
            <Button look="primary" busy={preview.isPending} onClick={() => preview.mutate()}>
              {t('adopt.preview')}
            </Button>
          </>
        )
      }
    >
      <div className="space-y-4">
        {error && (
          <Notice tone={isUnknown ? 'warning' : 'error'}>
            {errorText(error, i18n)}
            {isUnknown && ` ${t('outcome.unknownHint')}`}
          </Notice>
        )}
        {adopt.data ? (
          <Results list={adopt.data.list} left={left} />
        ) : previews ? (
          <Previews
            list={previews}
            emails={new Map(body().list.map(({ key, email }) => [key, email]))}
            left={left}
            restart={models.restart}
          />
        ) : (
          <>
            <ModelChoice value={models} onChange={setModels} />
            {mayAssign && (
              <AdoptCsv
                adoptees={list.map(adoptee)}
                onEmails={(emails) =>
                  setList((before) =>
                    before.map((row) => ({ ...row, email: emails.get(row.gateway.key) ?? row.email })),
                  )
                }
              />
            )}
            <ul className="space-y-4">
              {list.map((row, at) => (
                <li key={row.gateway.key} className="space-y-2 rounded-lg border border-line p-3">
                  <p className="text-sm">
                    <span className="font-medium break-all">{shownName(row.gateway)}</span>{' '}
                    <span className="text-muted">{t('adopt.of', { user: row.gateway.user })}</span>
                  </p>
                  <div className="grid gap-3 sm:grid-cols-3">
                    <Field
                      label={t('adopt.id')}
                      value={row.id}
                      onChange={(event) => set(at, { id: event.target.value })}
                    />
                    <Field
                      label={t('adopt.name')}
                      value={row.name}
                      onChange={(event) => set(at, { name: event.target.value })}
                    />
                    {mayAssign && (
                      <Field
                        label={t('adopt.email')}
                        type="email"
                        placeholder={t('adopt.emailHint')}
                        value={row.email}
                        onChange={(event) => set(at, { email: event.target.value })}
                      />
                    )}
                  </div>
                </li>
              ))}
            </ul>
          </>
        )}
      </div>
    </Dialog>
  );
}
