// What is known of one model: its limits, its prices by kind of token, and what it cost before.
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { exact } from '@tidepool/shared/i18n/time';
import { lazyPart } from '@tidepool/shared/lazy-part';
import { Button } from '@tidepool/shared/ui/button';
import { Confirm } from '@tidepool/shared/ui/confirm';
import { Dialog } from '@tidepool/shared/ui/dialog';
import { Facts, Panel } from '@tidepool/shared/ui/panel';
import { toast } from '@tidepool/shared/ui/toast';
import { Suspense, useState } from 'react';
import { api } from '../api';
import { useFormat } from '../format';
import { useRights } from '../me';
import type { Model } from '../records';
import { useModelText, type ModelKey } from './model-texts';

const ModelForm = lazyPart(() => import('./model-form'));

const KINDS = [
  ['input', 'model.input'],
  ['output', 'model.output'],
  ['cache_read', 'model.cacheRead'],
  ['cache_write', 'model.cacheWrite'],
  ['cache_write_1h', 'model.cacheWriteHour'],
] as const;

export default function ModelPanel({ model, onClose }: { model: Model; onClose: () => void }) {
  const i18n = useModelText();
  const { t, number, locale } = i18n;
  const client = useQueryClient();
  const { may } = useRights();
  const [editing, setEditing] = useState(false);
  const [deleting, setDeleting] = useState(false);
  const { id } = model;
  const history = useQuery({
    queryKey: ['models', 'prices', id],
    queryFn: () => unwrap(api.GET('/models/{id}/prices', { params: { path: { id } } })),
    // Once it is deleted, whatever asks for all of models again must not ask for its prices.
    enabled: !deleting,
  });
  // Whoever deletes a model with a price of its own and adds it again sets its price back.
  const mayDelete =
    may('models.manage') &&
    model.origin === 'added' &&
    (model.price_source !== 'edited' || may('models.prices'));
  const known = (value: string) => (value === '' ? t('model.unknown') : value);
  const tokens = (value: number | null | undefined) => known(value == null ? '' : number(value));
  const flag = (value: boolean | null | undefined) =>
    t(value == null ? 'model.unknown' : value ? 'model.yes' : 'model.no');
  const rows = [
    { name: t('model.provider'), value: model.provider },
    { name: t('model.upstream'), value: model.upstream_name },
    ...(model.offers.length > 0
      ? [{ name: t('model.offers'), value: model.offers.map((offer) => offer.provider).join(', ') }]
      : []),
    ...(model.aliases.length > 0 ? [{ name: t('model.aliases'), value: model.aliases.join(', ') }] : []),
    { name: t('model.purpose'), value: t(`model.purpose.${model.purpose}`) },
    { name: t('model.protocols'), value: model.protocols.join(', ') || t('model.protocolsAll') },
    { name: t('model.context'), value: tokens(model.context_window) },
    { name: t('model.answer'), value: tokens(model.max_output_tokens) },
    {
      name: t('model.inputs'),
      value: known(model.inputs.map((word) => t(`model.input.${word}`)).join(', ')),
    },
    { name: t('model.reasoning'), value: flag(model.reasoning) },
    { name: t('model.tools'), value: flag(model.tools) },
  ];
  return (
    <>
      <Dialog
        open
        isText
        width="wide"
        onClose={onClose}
        title={id}
        foot={
          <>
            {mayDelete && <Button onClick={() => setDeleting(true)}>{t('model.delete')}</Button>}
            {may('models.manage') && <Button onClick={() => setEditing(true)}>{t('model.change')}</Button>}
            <Button onClick={onClose}>{t('dialog.close')}</Button>
          </>
        }
      >
        <div className="space-y-5">
          <Facts rows={rows} />
          <Panel title={t('model.history')} query={history}>
            {({ list }) => (
              <ol className="space-y-4">
                {list.map((version) => (
                  <li key={version.valid_from} className="text-sm">
                    <p className="mb-1 text-muted">
                      {t('model.since', { time: exact(Date.parse(version.valid_from), locale) })} ·{' '}
                      {version.source === 'edited'
                        ? version.who
                          ? t('model.source.edited', { who: version.who })
                          : t('model.source.editedBySomebody')
                        : t(`model.source.${version.source}`)}
                    </p>
                    <Prices single={version.price_per_1k} rates={version.prices} />
                  </li>
                ))}
              </ol>
            )}
          </Panel>
        </div>
      </Dialog>
      {editing && (
        <Suspense>
          <ModelForm model={model} onClose={() => setEditing(false)} />
        </Suspense>
      )}
      {deleting && (
        <Confirm
          title={t('model.deleteTitle', { name: id })}
          confirm={t('model.delete')}
          run={() => unwrap(api.DELETE('/models/{id}', { params: { path: { id } } }))}
          onDone={() => {
            toast('success', t('model.deleted', { name: id }));
            void client.invalidateQueries({ queryKey: ['models'] });
            onClose();
          }}
          onClose={() => setDeleting(false)}
        >
          <p>{t('model.deleteText')}</p>
        </Confirm>
      )}
    </>
  );
}

/** The prices of one time, in dollars per million tokens; the single price where there are none by kind. */
function Prices({ single, rates }: { single: number; rates: Model['prices'] }) {
  const { t, number } = useModelText();
  const { fineMoney } = useFormat();
  if (rates.length === 0)
    return <p className="tabular-nums">{t('model.single', { price: fineMoney(single) })}</p>;
  const kinds = KINDS.filter(([kind]) => rates.some((rate) => rate[kind] != null));
  const tierOf = (rate: Model['prices'][number]) => {
    const tier: ModelKey = `model.tier.${rate.tier ?? 'standard'}`;
    return rate.above ? t('model.above', { tier: t(tier), tokens: number(rate.above) }) : t(tier);
  };
  return (
    <ul className="space-y-2">
      {rates.map((rate) => (
        <li key={`${rate.tier ?? ''} ${rate.above ?? 0}`}>
          <p className="font-medium">{tierOf(rate)}</p>
          <dl className="grid grid-cols-2 gap-x-4 gap-y-1 sm:grid-cols-5">
            {kinds.map(([kind, label]) => (
              <div key={kind}>
                <dt className="text-xs text-muted">{t(label)}</dt>
                <dd className="tabular-nums">{rate[kind] == null ? '–' : fineMoney(rate[kind])}</dd>
              </div>
            ))}
          </dl>
        </li>
      ))}
    </ul>
  );
}
