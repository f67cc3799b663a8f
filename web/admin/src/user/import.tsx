// Import of employees from CSV: first a dry run that shows every line, then a result for each.
import { useQuery } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { TextArea } from '@tidepool/shared/ui/text-area';
import { useId, useState } from 'react';
import { api } from '../api';
import { useText } from '../messages';
import { Batch } from '../parts/batch';
import { readImport } from './import-rows';

export function ImportUsers({ onClose }: { onClose: () => void }) {
  const { t, number, locale } = useText();
  const id = useId();
  const [text, setText] = useState('');
  const existing = useQuery({
    queryKey: ['users', 'emails'],
    queryFn: async () =>
      new Set((await unwrap(api.GET('/users'))).list.map((user) => user.email.toLowerCase())),
  });
  const rows = readImport(text, existing.data ?? new Set(), locale);
  const byLine = new Map(rows.map((row) => [String(row.line), row.user]));
  return (
    <Batch
      title={t('users.import')}
      lead={t('import.lead')}
      confirm={t('import.run')}
      ready={existing.isSuccess}
      changes={['users']}
      items={rows.map(({ line, user, problem }) => ({
        id: String(line),
        label: `${line}. ${[user.email, user.name, user.department].filter(Boolean).join(' · ')}`,
        effect: [
          t(user.password ? 'users.byPassword' : 'users.bySso'),
          user.quota_daily
            ? t('users.tokensPerDay', { count: number(user.quota_daily) })
            : t('users.noLimit'),
        ].join(' · '),
        skip: problem ? t(`import.${problem}`) : undefined,
      }))}
      run={async (item) => {
        const user = byLine.get(item.id);
        if (user) await unwrap(api.POST('/users', { body: user }));
      }}
      onClose={onClose}
    >
      <div className="mb-4 space-y-3">
        <div>
          <label htmlFor={id} className="mb-1.5 block text-sm font-medium">
            {t('import.file')}
          </label>
          <input
            id={id}
            type="file"
            accept=".csv,text/csv,text/plain"
            className="text-sm file:me-3 file:min-h-9 file:rounded-lg file:border file:border-control/60 file:bg-surface file:px-3 file:text-sm file:text-ink"
            onChange={(event) => void event.target.files?.[0]?.text().then(setText)}
          />
        </div>
        <TextArea
          label={t('import.text')}
          hint={t('import.hint')}
          mono
          rows={5}
          placeholder={'email,name,department,quota_daily,password'}
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
      </div>
    </Batch>
  );
}
