// The models that assistants may use: their limits and prices, their place in the fallback chain, on or off; synced to instances here.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { errorText } from '@tidepool/shared/api/error-text';
import { lazyPart } from '@tidepool/shared/lazy-part';
import { Badge } from '@tidepool/shared/ui/badge';
import { Button } from '@tidepool/shared/ui/button';
import { Confirm } from '@tidepool/shared/ui/confirm';
import { readNumbers } from '@tidepool/shared/ui/number';
import { NumberField } from '@tidepool/shared/ui/number-field';
import { Panel } from '@tidepool/shared/ui/panel';
import { EmptyState } from '@tidepool/shared/ui/states';
import { toast } from '@tidepool/shared/ui/toast';
import { GitCompare, Plus, RefreshCw } from 'lucide-react';
import { Suspense, useState } from 'react';
import { api } from '../api';
import { useFormat } from '../format';
import { useRights } from '../me';
import { useText } from '../messages';
import { useHealthCounts } from '../overview/queries';
import { FormDialog } from '../parts/form-dialog';
import { useModels } from '../parts/models';
import type { Model } from '../records';

// What opens over the list is loaded when it is opened: a page's first load has a limit.
const ModelForm = lazyPart(() => import('./model-form'));
const ModelPanel = lazyPart(() => import('./model-panel'));
const ModelCompare = lazyPart(() => import('./model-compare'));

/** The server keeps prices in billionths of a dollar. */
const NUMBERS = { price_per_1k: { min: 0, max: 1_000_000, decimals: 9 } };

export function ModelTable() {
  const i18n = useText();
  const { t, number } = i18n;
  const format = useFormat();
  const client = useQueryClient();
  const models = useModels();
  const counts = useHealthCounts();
  const { may } = useRights();
  const [pricing, setPricing] = useState<Model | null>(null);
  const [syncing, setSyncing] = useState(false);
  const [opened, setOpened] = useState<'add' | 'compare' | null>(null);
  const [shown, setShown] = useState<string | null>(null);
  const changed = () => void client.invalidateQueries({ queryKey: ['models'] });
  const change = (id: string, body: { enabled?: boolean; price_per_1k?: number }) =>
    unwrap(api.PATCH('/models/{id}', { params: { path: { id } }, body }));
  const toggle = useMutation({
    mutationFn: (model: Model) => change(model.id, { enabled: !model.enabled }),
    onSuccess: changed,
    onError: (error) => toast('error', errorText(error, i18n)),
  });
  // In dollars per million tokens where prices by kind are in force, else the one price.
  const priceOf = (model: Model) => {
    const usual = model.prices[0];
    if (!model.by_kind || usual?.input == null)
      return t('models.price', { price: format.fineMoney(model.price_per_1k) });
    if (usual.output == null) return t('models.priceInput', { input: format.fineMoney(usual.input) });
    return t('models.priceKinds', {
      input: format.fineMoney(usual.input),
      output: format.fineMoney(usual.output),
    });
  };
  const instances = counts.data ? Object.values(counts.data).reduce((sum, count) => sum + count, 0) : 0;
  return (
    <>
      <Panel
        title={t('keys.tab.models')}
        query={models}
        action={
          may('models.manage') && (
            <span className="flex flex-wrap gap-2">
              <Button size="small" onClick={() => setOpened('add')}>
                <Plus className="size-4" aria-hidden="true" />
                {t('models.add')}
              </Button>
              <Button size="small" onClick={() => setOpened('compare')}>
                <GitCompare className="size-4" aria-hidden="true" />
                {t('models.compare')}
              </Button>
              <Button size="small" onClick={() => setSyncing(true)}>
                <RefreshCw className="size-4" aria-hidden="true" />
                {t('models.sync')}
              </Button>
            </span>
          )
        }
        empty={{
          when: ({ list }) => list.length === 0,
          show: <EmptyState title={t('models.none')}>{t('models.noneText')}</EmptyState>,
        }}
      >
        {({ list }) => (
          <>
            <ul className="divide-y divide-line">
              {list.map((model) => (
                <li key={model.id} className="flex flex-wrap items-center gap-x-4 gap-y-1.5 py-2.5 text-sm">
                  <span className="min-w-0 flex-1 basis-48">
                    <button
                      type="button"
                      className={`min-h-8 text-start font-medium break-words underline decoration-line underline-offset-4 hover:decoration-control ${model.enabled ? '' : 'text-muted'}`}
                      onClick={() => setShown(model.id)}
                    >
                      {model.id}
                    </button>
                    <span className="block text-muted">
                      {[
                        model.provider,
                        model.context_window &&
                          t('models.context', { tokens: format.short(model.context_window) }),
                      ]
                        .filter(Boolean)
                        .join(' · ')}
                    </span>
                  </span>
                  {model.chain != null && <Badge tone="busy">{t('models.chain', { n: model.chain })}</Badge>}
                  <span className="sm:w-60 sm:text-end">
                    {may('models.prices') ? (
                      <button
                        type="button"
                        className="min-h-8 rounded tabular-nums underline decoration-line underline-offset-4 hover:decoration-control"
                        aria-label={t('models.priceOf', { name: model.id })}
                        onClick={() => setPricing(model)}
                      >
                        {priceOf(model)}
                      </button>
                    ) : (
                      <span className="tabular-nums">{priceOf(model)}</span>
                    )}
                  </span>
                  <label
                    className="flex min-h-8 items-center gap-2 sm:w-24"
                    title={may('models.manage') ? undefined : t('forbidden.action')}
                  >
                    <input
                      type="checkbox"
                      role="switch"
                      className="size-4 accent-accent"
                      checked={model.enabled}
                      disabled={!may('models.manage')}
                      aria-label={t('models.offer', { name: model.id })}
                      onChange={() => toggle.mutate(model)}
                    />
                    {t(model.enabled ? 'models.on' : 'models.off')}
                  </label>
                </li>
              ))}
            </ul>
            {pricing && (
              <FormDialog
                title={t('models.priceOf', { name: pricing.id })}
                submit={t('dialog.save')}
                onClose={() => setPricing(null)}
                onDone={changed}
                send={(data) => change(pricing.id, readNumbers(data, NUMBERS, i18n))}
              >
                {(refused) => (
                  <NumberField
                    label={t('models.priceLabel')}
                    name="price_per_1k"
                    spec={NUMBERS.price_per_1k}
                    value={pricing.price_per_1k}
                    hint={t('models.priceHint')}
                    error={refused('price_per_1k')}
                  />
                )}
              </FormDialog>
            )}
            {syncing && (
              <Confirm
                title={t('models.sync')}
                danger={false}
                confirm={t('models.syncAll', { count: number(instances) })}
                run={async () => {
                  const { task_ids } = await unwrap(api.POST('/models/sync', { body: {} }));
                  toast('success', t('models.synced', { count: number(task_ids.length) }));
                  changed();
                }}
                onClose={() => setSyncing(false)}
              >
                <p>{t('models.syncText', { count: number(instances) })}</p>
              </Confirm>
            )}
          </>
        )}
      </Panel>
      <Suspense>
        {opened === 'add' && <ModelForm onClose={() => setOpened(null)} />}
        {opened === 'compare' && <ModelCompare onClose={() => setOpened(null)} />}
        {models.data?.list
          .filter(({ id }) => id === shown)
          .map((model) => (
            <ModelPanel key={model.id} model={model} onClose={() => setShown(null)} />
          ))}
      </Suspense>
    </>
  );
}
