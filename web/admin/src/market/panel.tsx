// One marketplace item over the list: its words, its files, and what looks dangerous in them.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { errorText } from '@tidepool/shared/api/error-text';
import { Button } from '@tidepool/shared/ui/button';
import { SidePanel } from '@tidepool/shared/ui/dialog';
import { Field } from '@tidepool/shared/ui/field';
import { Notice } from '@tidepool/shared/ui/notice';
import { SelectField } from '@tidepool/shared/ui/select';
import { ErrorState, Skeleton } from '@tidepool/shared/ui/states';
import { CheckField, TextArea } from '@tidepool/shared/ui/text-area';
import { toast } from '@tidepool/shared/ui/toast';
import { Plus, Trash2 } from 'lucide-react';
import { useState } from 'react';
import { api } from '../api';
import { useMay } from '../me';
import { useText } from '../messages';
import { changedFields } from '../parts/changed-fields';
import { ITEM_TYPES, oneOf, type ItemType, type WholeItem } from '../records';

type File = Pick<WholeItem['files'][number], 'path' | 'scope' | 'content'> &
  Partial<WholeItem['files'][number]>;

const sendable = (files: readonly File[]) =>
  files.map(({ path, scope, content }) => ({ path, scope, content }));

export function ItemPanel({ id, onClose }: { id: string; onClose: () => void }) {
  const { t } = useText();
  const fresh = id === 'new';
  const item = useQuery({
    queryKey: ['market', 'one', id],
    queryFn: () => unwrap(api.GET('/marketplace-items/{id}', { params: { path: { id } } })),
    enabled: !fresh,
    // The form holds its own copy; a refresh would not change it.
    staleTime: Infinity,
  });
  return (
    <SidePanel
      open
      onClose={onClose}
      title={fresh ? t('market.add') : (item.data?.name ?? id)}
      lead={item.data?.professions.map((one) => one.name).join(', ')}
    >
      {fresh ? (
        <ItemForm onDone={onClose} />
      ) : item.data ? (
        <ItemForm item={item.data} onDone={onClose} />
      ) : item.isError ? (
        <ErrorState error={item.error} onRetry={() => void item.refetch()} />
      ) : (
        <Skeleton lines={8} />
      )}
    </SidePanel>
  );
}

function ItemForm({ item, onDone }: { item?: WholeItem; onDone: () => void }) {
  const i18n = useText();
  const { t } = i18n;
  const client = useQueryClient();
  const readOnly = !useMay('marketplace.manage');
  const [type, setType] = useState<ItemType>(item?.type ?? 'skill');
  const [words, setWords] = useState({
    name: item?.name ?? '',
    icon: item?.icon ?? '',
    version: item?.version ?? '1.0.0',
    description: item?.description ?? '',
  });
  const [active, setActive] = useState(item?.is_active !== 0);
  const [files, setFiles] = useState<readonly File[]>(
    item?.files ?? [{ path: 'SKILL.md', scope: 'workspace', content: '' }],
  );
  const save = useMutation({
    mutationFn: () => {
      const body = {
        ...words,
        is_active: active ? (1 as const) : (0 as const),
        files: sendable(files),
      };
      return item
        ? unwrap(
            api.PATCH('/marketplace-items/{id}', {
              params: { path: { id: item.id } },
              body: changedFields<typeof body>({ ...item, files: sendable(item.files) }, body),
            }),
          )
        : unwrap(api.POST('/marketplace-items', { body: { ...body, type } }));
    },
    onSuccess: (saved) => {
      void client.invalidateQueries({ queryKey: ['market'] });
      toast('success', t('market.saved', { name: saved.name }));
      onDone();
    },
  });
  const word = (name: keyof typeof words) => ({
    value: words[name],
    readOnly,
    onChange: (event: { target: { value: string } }) => setWords({ ...words, [name]: event.target.value }),
  });
  const setFile = (index: number, change: Partial<File>) =>
    setFiles(files.map((file, at) => (at === index ? { ...file, ...change } : file)));
  return (
    <form
      className="space-y-5"
      onSubmit={(event) => {
        event.preventDefault();
        if (!readOnly && !save.isPending) save.mutate();
      }}
    >
      <div className="grid gap-4 sm:grid-cols-2">
        <Field label={t('market.name')} required {...word('name')} />
        <SelectField
          label={t('market.type')}
          value={type}
          disabled={item !== undefined}
          onChange={(event) => setType(oneOf(event.target.value, ITEM_TYPES) ?? 'skill')}
          choices={ITEM_TYPES.map((value) => ({ value, label: t(`market.${value}`) }))}
        />
        <Field label={t('professions.icon')} {...word('icon')} />
        <Field label={t('market.version')} {...word('version')} />
      </div>
      <TextArea label={t('professions.description')} rows={3} {...word('description')} />
      <CheckField
        label={t('market.isOffered')}
        checked={active}
        disabled={readOnly}
        onChange={(event) => setActive(event.target.checked)}
      />
      <section className="space-y-4">
        <div className="flex items-center">
          <h3 className="flex-1 text-sm font-semibold">{t('market.files')}</h3>
          {!readOnly && (
            <Button
              size="small"
              onClick={() => setFiles([...files, { path: '', scope: 'workspace', content: '' }])}
            >
              <Plus className="size-4" aria-hidden="true" />
              {t('market.addFile')}
            </Button>
          )}
        </div>
        {files.map((file, index) => (
          // A file's place in the list is its identity here: its path is being edited.
          <fieldset key={index} className="space-y-3 rounded-lg border border-line p-4">
            <legend className="px-1 text-sm text-muted">{file.path || t('market.newFile')}</legend>
            <div className="grid gap-3 sm:grid-cols-[1fr_11rem_auto] sm:items-end">
              <Field
                label={t('market.path')}
                value={file.path}
                readOnly={readOnly}
                onChange={(event) => setFile(index, { path: event.target.value })}
              />
              <SelectField
                label={t('market.scope')}
                value={file.scope}
                disabled={readOnly}
                onChange={(event) =>
                  setFile(index, { scope: event.target.value === 'config' ? 'config' : 'workspace' })
                }
                choices={[
                  { value: 'workspace', label: t('market.workspace') },
                  { value: 'config', label: t('market.configScope') },
                ]}
              />
              {!readOnly && (
                <Button
                  look="danger"
                  aria-label={t('market.removeFile', { path: file.path })}
                  onClick={() => setFiles(files.filter((_, at) => at !== index))}
                >
                  <Trash2 className="size-4" aria-hidden="true" />
                  <span className="sm:hidden">{t('bots.remove')}</span>
                </Button>
              )}
            </div>
            <TextArea
              label={t('market.content')}
              mono
              rows={Math.min(16, Math.max(4, file.content.split('\n').length))}
              value={file.content}
              readOnly={readOnly}
              onChange={(event) => setFile(index, { content: event.target.value })}
            />
            {file.findings?.map((finding) => (
              <Notice key={`${finding.line}-${finding.kind}`} tone="warning">
                {t('market.finding', { line: finding.line, why: finding.why })}
                <code className="mt-1 block font-mono text-xs">{finding.excerpt}</code>
              </Notice>
            ))}
          </fieldset>
        ))}
      </section>
      {save.isError && <Notice tone="error">{errorText(save.error, i18n)}</Notice>}
      {!readOnly && (
        <Button type="submit" look="primary" busy={save.isPending}>
          {t('dialog.save')}
        </Button>
      )}
    </form>
  );
}
