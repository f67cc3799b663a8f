// The form that adds a model, from what the release knows or by hand, or changes one.
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { Combobox, type Found } from '@tidepool/shared/ui/combobox';
import { Field } from '@tidepool/shared/ui/field';
import { fieldText } from '@tidepool/shared/ui/form';
import { readNumbers } from '@tidepool/shared/ui/number';
import { NumberField } from '@tidepool/shared/ui/number-field';
import { SelectField } from '@tidepool/shared/ui/select';
import { CheckField, TextArea } from '@tidepool/shared/ui/text-area';
import { useId, useState } from 'react';
import { api } from '../api';
import { useMay } from '../me';
import { changedFields } from '../parts/changed-fields';
import { FormDialog } from '../parts/form-dialog';
import { oneOf, type Model } from '../records';
import { useModelText } from './model-texts';

const KINDS = ['openai', 'anthropic', 'google', 'ollama', 'compatible'] as const;
const PURPOSES = ['chat', 'embedding'] as const;
const PROTOCOLS = ['chat', 'messages', 'responses', 'embeddings'] as const;
const INPUTS = ['text', 'image', 'document', 'audio'] as const;
const PRICES = [
  ['input', 'model.input'],
  ['output', 'model.output'],
  ['cache_read', 'model.cacheRead'],
  ['cache_write', 'model.cacheWrite'],
  ['cache_write_1h', 'model.cacheWriteHour'],
] as const;

/** The prices of the standard tier; the others are kept as they are. */
const isStandard = (rate: Model['prices'][number]) =>
  (rate.tier ?? 'standard') === 'standard' && (rate.above ?? 0) === 0;

const flags = { yes: true, no: false, unknown: null } as const;
const flagOf = (value: boolean | null | undefined) => (value == null ? 'unknown' : value ? 'yes' : 'no');
const readFlag = (text: string) => flags[oneOf(text, ['yes', 'no', 'unknown'] as const) ?? 'unknown'];
const names = (text: string) =>
  text
    .split(/[,，\n]/)
    .map((name) => name.trim())
    .filter(Boolean);

/** A provider on each line, and behind it what it calls the model where that is another name. */
const offersText = (offers: Model['offers']) =>
  offers.map(({ provider, upstream_name }) => [provider, upstream_name].filter(Boolean).join(' ')).join('\n');
const readOffers = (text: string): Model['offers'] =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean)
    .map((line) => {
      const [provider = '', ...name] = line.split(/\s+/);
      return { provider, upstream_name: name.join(' ') || null };
    });

export default function ModelForm({ model, onClose }: { model?: Model; onClose: () => void }) {
  const i18n = useModelText();
  const { t } = i18n;
  const client = useQueryClient();
  const mayPrice = useMay('models.prices');
  const [row, setRow] = useState<Found | null>(null);
  const unknown = t('model.unknown');
  const limit = { min: 1, max: 100_000_000, none: unknown };
  const limits = { context_window: limit, max_output_tokens: limit };
  const price = { min: 0, max: 100_000, decimals: 9, none: unknown };
  const prices = Object.fromEntries(PRICES.map(([kind]) => [kind, price]));
  const standard = model?.prices.find(isStandard);
  const byHand = model !== undefined || row === null;
  // Who is asked decides what the tokens cost: of a model that exists it is changed by those who set prices.
  const mayRoute = model === undefined || mayPrice;
  const list = useId();
  const providers = useQuery({
    queryKey: ['providers'],
    queryFn: () => unwrap(api.GET('/providers')),
    enabled: mayRoute,
  });

  function read(data: FormData) {
    const body = {
      ...(mayRoute && {
        provider: fieldText(data, 'provider').trim() || undefined,
        upstream_name: fieldText(data, 'upstream_name').trim() || null,
      }),
      ...(mayPrice && { offers: readOffers(fieldText(data, 'offers')) }),
      aliases: names(fieldText(data, 'aliases')),
      purpose: oneOf(fieldText(data, 'purpose'), PURPOSES),
      protocols: PROTOCOLS.filter((word) => data.has(`protocol_${word}`)),
      inputs: INPUTS.filter((word) => data.has(`input_${word}`)),
      reasoning: readFlag(fieldText(data, 'reasoning')),
      tools: readFlag(fieldText(data, 'tools')),
      ...readNumbers(data, limits, i18n),
    };
    if (!mayPrice) return body;
    const read: Record<string, number | null> = readNumbers(data, prices, i18n);
    const kinds = Object.fromEntries(PRICES.map(([kind]) => [kind, read[kind] ?? null]));
    const isKnown = Object.values(kinds).some((value) => value !== null);
    const isChanged = PRICES.some(([kind]) => (kinds[kind] ?? null) !== (standard?.[kind] ?? null));
    if (!isChanged) return body;
    const others = model?.prices.filter((rate) => !isStandard(rate)) ?? [];
    return { ...body, prices: isKnown ? [kinds, ...others] : [] };
  }

  function send(data: FormData) {
    if (model === undefined) {
      const id = fieldText(data, 'id').trim();
      const kind = oneOf(fieldText(data, 'kind'), KINDS);
      if (byHand) return unwrap(api.POST('/models', { body: { ...read(data), id, kind } }));
      const body = {
        id,
        kind,
        aliases: names(fieldText(data, 'aliases')),
        from_table: row.value,
        provider: fieldText(data, 'provider').trim() || undefined,
        offers: mayPrice ? readOffers(fieldText(data, 'offers')) : undefined,
      };
      return unwrap(api.POST('/models', { body }));
    }
    const before = {
      ...model,
      upstream_name: model.upstream_name === model.id ? null : model.upstream_name,
      prices: undefined,
    };
    const patch = read(data);
    const body = changedFields<typeof patch>(before, patch);
    return unwrap(api.PATCH('/models/{id}', { params: { path: { id: model.id } }, body }));
  }

  return (
    <FormDialog
      width="wide"
      title={model ? t('model.editTitle', { name: model.id }) : t('model.addTitle')}
      lead={model ? undefined : t('model.addLead')}
      submit={t(model ? 'dialog.save' : 'models.add')}
      onClose={onClose}
      onDone={() => void client.invalidateQueries({ queryKey: ['models'] })}
      send={send}
    >
      {(refused) => (
        <>
          {model === undefined && (
            <>
              <Combobox
                label={t('model.fromTable')}
                hint={t('model.fromTableHint')}
                error={refused('from_table')}
                chosen={row}
                onChoose={setRow}
                queryKey={['models-table']}
                search={async (text) => {
                  const { list } = await unwrap(api.GET('/models/table'));
                  const wanted = text.trim().toLowerCase();
                  return list
                    .filter(({ name, provider }) => `${name} ${provider}`.toLowerCase().includes(wanted))
                    .slice(0, 20)
                    .map(({ name, provider, source_date }) => ({
                      value: name,
                      label: name,
                      hint: `${provider} · ${t('model.readAt', { date: source_date })}`,
                    }));
                }}
              />
              <div className="grid gap-4 sm:grid-cols-2">
                <Field
                  key={row?.value}
                  label={t('model.id')}
                  hint={t('model.idHint')}
                  name="id"
                  required
                  defaultValue={row?.value}
                  error={refused('id')}
                />
                {/* Of a row at its price, those who set no prices take who is asked, too. */}
                {(byHand || mayPrice) && (
                  <SelectField
                    // A row's own kind is the first choice, whatever was chosen before the row.
                    key={`kind ${row?.value ?? ''}`}
                    label={t('model.kind')}
                    name="kind"
                    choices={[
                      ...(byHand ? [] : [{ value: '', label: t('model.kindTable') }]),
                      ...KINDS.map((kind) => ({ value: kind, label: kind })),
                    ]}
                  />
                )}
              </div>
            </>
          )}
          <Field
            label={t('model.aliases')}
            hint={t('model.aliasesHint')}
            name="aliases"
            defaultValue={model?.aliases.join(', ')}
            error={refused('aliases')}
          />
          {(byHand ? mayRoute : mayPrice) && (
            <Field
              key={`provider ${row?.value ?? ''}`}
              label={t('model.provider')}
              hint={t(byHand ? 'model.providerHint' : 'model.providerTableHint')}
              name="provider"
              list={list}
              defaultValue={model?.provider}
              error={refused('provider')}
            >
              <datalist id={list}>
                {providers.data?.list.map(({ id, name }) => (
                  <option key={id} value={name} />
                ))}
              </datalist>
            </Field>
          )}
          {mayPrice && (
            <TextArea
              label={t('model.offers')}
              hint={t('model.offersHint')}
              name="offers"
              rows={2}
              mono
              defaultValue={model && offersText(model.offers)}
              error={refused('offers') ?? refused('offers.provider') ?? refused('offers.upstream_name')}
            />
          )}
          {byHand && (
            <>
              <div className="grid gap-4 sm:grid-cols-2">
                {mayRoute && (
                  <Field
                    label={t('model.upstream')}
                    hint={t('model.upstreamHint')}
                    name="upstream_name"
                    defaultValue={model && model.upstream_name !== model.id ? model.upstream_name : ''}
                    error={refused('upstream_name')}
                  />
                )}
                <SelectField
                  label={t('model.purpose')}
                  name="purpose"
                  defaultValue={model?.purpose}
                  choices={PURPOSES.map((value) => ({ value, label: t(`model.purpose.${value}`) }))}
                />
              </div>
              <fieldset>
                <legend className="mb-1.5 text-sm font-medium">{t('model.protocols')}</legend>
                <p className="mb-1.5 text-sm text-muted">{t('model.protocolsHint')}</p>
                <div className="flex flex-wrap gap-x-5 gap-y-2">
                  {PROTOCOLS.map((word) => (
                    <CheckField
                      key={word}
                      name={`protocol_${word}`}
                      label={word}
                      defaultChecked={model?.protocols.includes(word)}
                    />
                  ))}
                </div>
              </fieldset>
              <div className="grid gap-4 sm:grid-cols-2">
                <NumberField
                  label={t('model.context')}
                  name="context_window"
                  spec={limit}
                  value={model?.context_window}
                  error={refused('context_window')}
                />
                <NumberField
                  label={t('model.answer')}
                  name="max_output_tokens"
                  spec={limit}
                  value={model?.max_output_tokens}
                  error={refused('max_output_tokens')}
                />
                {(['reasoning', 'tools'] as const).map((name) => (
                  <SelectField
                    key={name}
                    label={t(`model.${name}`)}
                    name={name}
                    defaultValue={flagOf(model?.[name])}
                    choices={(['yes', 'no', 'unknown'] as const).map((value) => ({
                      value,
                      label: t(`model.${value}`),
                    }))}
                  />
                ))}
              </div>
              <fieldset>
                <legend className="mb-1.5 text-sm font-medium">{t('model.inputs')}</legend>
                <div className="flex flex-wrap gap-x-5 gap-y-2">
                  {INPUTS.map((word) => (
                    <CheckField
                      key={word}
                      name={`input_${word}`}
                      label={t(`model.input.${word}`)}
                      defaultChecked={model?.inputs.includes(word)}
                    />
                  ))}
                </div>
              </fieldset>
              {mayPrice && (
                <fieldset>
                  <legend className="mb-1.5 text-sm font-medium">{t('model.prices')}</legend>
                  <p className="mb-3 text-sm text-muted">{t('model.pricesHint')}</p>
                  <div className="grid gap-4 sm:grid-cols-2">
                    {PRICES.map(([kind, label]) => (
                      <NumberField
                        key={kind}
                        label={t(label)}
                        name={kind}
                        spec={price}
                        value={standard?.[kind]}
                        error={refused(kind) ?? (kind === 'input' ? refused('prices') : null)}
                      />
                    ))}
                  </div>
                </fieldset>
              )}
            </>
          )}
        </>
      )}
    </FormDialog>
  );
}
