// Adopts gateways of a server: names and owners, then a preview of every change, then the result for each.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { errorText } from '@tidepool/shared/api/error-text';
import { Button } from '@tidepool/shared/ui/button';
import { Dialog } from '@tidepool/shared/ui/dialog';
import { Field } from '@tidepool/shared/ui/field';
import { Notice } from '@tidepool/shared/ui/notice';
import { Segmented } from '@tidepool/shared/ui/segmented';
import { useState } from 'react';
import { api } from '../api';
import { useMay } from '../me';
import type { Adoption, AdoptionPreview, DiscoveredGateway } from '../records';
import { useAdoptText, type Translate } from './adopt-texts';
import { proposedId, shownName } from './discovered-text';

interface Row {
  key: string;
  label: string;
  id: string;
  name: string;
  email: string;
}

function rows(gateways: readonly DiscoveredGateway[]): Row[] {
  const taken = new Set<string>();
  return gateways.map((gateway) => {
    const id = proposedId(gateway, taken);
    taken.add(id);
    return { key: gateway.key, label: shownName(gateway), id, name: id, email: '' };
  });
}

interface AdoptDialogProps {
  server: string;
  gateways: readonly DiscoveredGateway[];
  onClose: () => void;
}

export function AdoptDialog({ server, gateways, onClose }: AdoptDialogProps) {
  const i18n = useAdoptText();
  const { t, number } = i18n;
  const client = useQueryClient();
  const mayAssign = useMay('instances.assign_unisolated');
  const [list, setList] = useState(() => rows(gateways));
  const [llm, setLlm] = useState<'own' | 'ours'>('own');
  const [restart, setRestart] = useState(false);
  const body = () => ({
    list: list.map(({ key, id, name, email }) => ({
      key,
      id: id.trim(),
      name: name.trim(),
      email: email.trim() || null,
      keeps_llm: llm === 'own',
      restart: llm === 'ours' && restart,
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
  const set = (at: number, change: Partial<Row>) =>
    setList((before) => before.map((row, number) => (number === at ? { ...row, ...change } : row)));
  const previews = preview.data?.list;
  const count = previews?.filter((one) => one.refusal == null).length ?? 0;
  const error = adopt.error ?? preview.error;
  const title =
    list.length === 1
      ? t('adopt.dialogOne', { name: list[0]?.label ?? '' })
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
            <Button onClick={() => preview.reset()}>{t('adopt.back')}</Button>
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
        {error && <Notice tone="error">{errorText(error, i18n)}</Notice>}
        {adopt.data ? (
          <Results list={adopt.data.list} t={t} number={number} />
        ) : previews ? (
          <ul className="divide-y divide-line text-sm">
            {previews.map((one) => (
              <li key={one.key} className="py-2">
                <span className="font-medium">{one.instance_id}</span>{' '}
                <PreviewText preview={one} restart={restart} t={t} number={number} />
              </li>
            ))}
          </ul>
        ) : (
          <>
            <Segmented
              legend={t('adopt.llm')}
              value={llm}
              options={[
                { value: 'own', label: t('adopt.llmOwn') },
                { value: 'ours', label: t('adopt.llmOurs') },
              ]}
              onChange={setLlm}
            />
            <p className="text-sm text-muted">
              {t(llm === 'own' ? 'adopt.llmOwnHint' : 'adopt.llmOursHint')}
            </p>
            {llm === 'ours' && (
              <label className="flex items-start gap-2 text-sm">
                <input
                  type="checkbox"
                  className="mt-1"
                  checked={restart}
                  onChange={(event) => setRestart(event.target.checked)}
                />
                <span>
                  {t('adopt.restart')}
                  <span className="block text-muted">{t('adopt.restartHint')}</span>
                </span>
              </label>
            )}
            <ul className="space-y-4">
              {list.map((row, at) => (
                <li key={row.key} className="space-y-2 rounded-lg border border-line p-3">
                  <p className="text-sm font-medium break-all">{row.label}</p>
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

interface PreviewTextProps {
  preview: AdoptionPreview;
  restart: boolean;
  t: Translate;
  number: (value: number) => string;
}

function PreviewText({ preview, restart, t, number }: PreviewTextProps) {
  const { changes, refusal, needs_restart: needsRestart } = preview;
  if (refusal != null) return <span className="text-danger">{t('adopt.skipped', { reason: refusal })}</span>;
  if (changes.length === 0) return <span className="text-muted">{t('adopt.nothing')}</span>;
  const summary = [
    changes.length === 1 ? t('adopt.writesOne') : t('adopt.writes', { count: number(changes.length) }),
    needsRestart && t(restart ? 'adopt.restarts' : 'adopt.waits'),
  ];
  return (
    <details>
      <summary className="cursor-pointer text-muted">{summary.filter(Boolean).join(', ')}</summary>
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
  t: Translate;
  number: (value: number) => string;
}

function Results({ list, t, number }: ResultsProps) {
  const adopted = list.filter((one) => one.refusal == null).length;
  return (
    <>
      <p role="status" className="font-medium">
        {t('adopt.done', { adopted: number(adopted), skipped: number(list.length - adopted) })}
      </p>
      <ul className="divide-y divide-line text-sm">
        {list.map((one) => (
          <li key={one.key} className="py-2">
            <span className="font-medium">{one.instance_id}</span>{' '}
            {one.refusal != null ? (
              <span className="text-danger">{t('adopt.skipped', { reason: one.refusal })}</span>
            ) : (
              <span className="text-muted">
                {t('adopt.adopted')}. {one.task_id != null && t('adopt.written')}
              </span>
            )}
          </li>
        ))}
      </ul>
    </>
  );
}
