// Which models differ from what the release knows of them, with a button that takes it over.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { errorText } from '@tidepool/shared/api/error-text';
import { Button } from '@tidepool/shared/ui/button';
import { Dialog } from '@tidepool/shared/ui/dialog';
import { Panel } from '@tidepool/shared/ui/panel';
import { toast } from '@tidepool/shared/ui/toast';
import { api } from '../api';
import { useMay } from '../me';
import { useModelText } from './model-texts';

export default function ModelCompare({ onClose }: { onClose: () => void }) {
  const i18n = useModelText();
  const { t } = i18n;
  const client = useQueryClient();
  const mayPrice = useMay('models.prices');
  const compared = useQuery({
    queryKey: ['models', 'compare'],
    queryFn: () => unwrap(api.GET('/models/compare')),
  });
  const take = useMutation({
    mutationFn: (id: string) => unwrap(api.POST('/models/{id}/take-table', { params: { path: { id } } })),
    onSuccess: ({ id }) => {
      toast('success', t('model.taken', { name: id }));
      void client.invalidateQueries({ queryKey: ['models'] });
    },
    onError: (error) => toast('error', errorText(error, i18n)),
  });
  return (
    <Dialog
      open
      width="wide"
      title={t('model.compareTitle')}
      lead={t('model.compareLead')}
      onClose={onClose}
      foot={<Button onClick={onClose}>{t('dialog.close')}</Button>}
    >
      <Panel title={t('keys.tab.models')} query={compared}>
        {({ list, unknown }) => {
          const different = list.filter(({ differences }) => differences.length > 0);
          return (
            <div className="space-y-6 text-sm">
              {different.length === 0 && <p>{t('model.same')}</p>}
              {different.map((model) => (
                <section key={model.id} aria-label={model.id}>
                  <div className="flex flex-wrap items-center gap-x-4 gap-y-1">
                    <h3 className="min-w-0 flex-1 basis-40 font-medium">{model.id}</h3>
                    {mayPrice && (
                      <Button
                        size="small"
                        busy={take.isPending && take.variables === model.id}
                        aria-label={t('model.takeFor', { name: model.id })}
                        onClick={() => take.mutate(model.id)}
                      >
                        {t('model.take')}
                      </Button>
                    )}
                  </div>
                  <p className="text-muted">
                    <a
                      className="underline underline-offset-4"
                      href={model.source}
                      target="_blank"
                      rel="noreferrer"
                    >
                      {t('model.readAt', { date: model.source_date })}
                    </a>
                  </p>
                  <div className="overflow-x-auto">
                    <table className="mt-1 w-full">
                      <thead className="text-muted">
                        <tr>
                          {(['model.field', 'model.ours', 'model.theirs'] as const).map((key) => (
                            <th key={key} scope="col" className="py-1 pe-4 text-start font-normal">
                              {t(key)}
                            </th>
                          ))}
                        </tr>
                      </thead>
                      <tbody>
                        {model.differences.map(({ field, ours, theirs }) => (
                          <tr key={field}>
                            <th scope="row" className="py-1 pe-4 text-start font-normal">
                              {field}
                            </th>
                            <td className="py-1 pe-4 tabular-nums">{ours ?? t('model.unknown')}</td>
                            <td className="py-1 pe-4 tabular-nums">{theirs ?? t('model.unknown')}</td>
                          </tr>
                        ))}
                      </tbody>
                    </table>
                  </div>
                </section>
              ))}
              {unknown.length > 0 && (
                <p className="text-muted">{t('model.notKnown', { names: unknown.join(', ') })}</p>
              )}
            </div>
          );
        }}
      </Panel>
    </Dialog>
  );
}
