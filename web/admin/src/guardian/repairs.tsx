// All repairs, and a look at what would be repaired now without doing it.
import { useMutation, useQuery } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { errorText } from '@tidepool/shared/api/error-text';
import { Button } from '@tidepool/shared/ui/button';
import { Notice } from '@tidepool/shared/ui/notice';
import { Card } from '@tidepool/shared/ui/panel';
import { EmptyState } from '@tidepool/shared/ui/states';
import { SearchCheck } from 'lucide-react';
import { api } from '../api';
import { useMay } from '../me';
import { useText } from '../messages';
import { QueryState } from '../parts/query-state';
import { PlannedList, RepairList } from './repair-list';

export function Repairs() {
  const i18n = useText();
  const { t } = i18n;
  const mayLook = useMay('instances.manage');
  const repairs = useQuery({
    queryKey: ['repairs', 'all'],
    queryFn: () => unwrap(api.GET('/repairs', { params: { query: { page: 1, page_size: 100 } } })),
    retry: false,
  });
  const preview = useMutation({ mutationFn: () => unwrap(api.POST('/repairs/preview', { body: {} })) });
  return (
    <div className="grid items-start gap-4 xl:grid-cols-2">
      <Card title={t('repairs.title')}>
        <QueryState query={repairs}>
          {({ list }) =>
            list.length === 0 ? (
              <EmptyState title={t('repairs.none')}>{t('repairs.noneText')}</EmptyState>
            ) : (
              <RepairList repairs={list} />
            )
          }
        </QueryState>
      </Card>
      {mayLook && (
        <Card
          title={t('repairs.preview')}
          action={
            <Button size="small" busy={preview.isPending} onClick={() => preview.mutate()}>
              <SearchCheck className="size-4" aria-hidden="true" />
              {t('repairs.look')}
            </Button>
          }
        >
          <div aria-live="polite">
            {preview.isIdle && <p className="text-sm text-muted">{t('repairs.previewText')}</p>}
            {preview.isError && <Notice tone="error">{errorText(preview.error, i18n)}</Notice>}
            {preview.data &&
              (preview.data.list.length === 0 ? (
                <EmptyState title={t('repairs.nothing')}>{t('repairs.nothingText')}</EmptyState>
              ) : (
                <PlannedList repairs={preview.data.list} />
              ))}
          </div>
        </Card>
      )}
    </div>
  );
}
