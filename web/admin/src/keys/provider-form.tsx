// The form of a provider: what is known of its kind fills it, and the address, protocols, times and proxy can differ.
import { useQuery } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { Field, PasswordField } from '@tidepool/shared/ui/field';
import { fieldText } from '@tidepool/shared/ui/form';
import { readNumbers } from '@tidepool/shared/ui/number';
import { NumberField } from '@tidepool/shared/ui/number-field';
import { SelectField } from '@tidepool/shared/ui/select';
import { CheckField } from '@tidepool/shared/ui/text-area';
import { useState } from 'react';
import { api } from '../api';
import { FormDialog } from '../parts/form-dialog';
import type { Provider, ProviderPreset } from '../records';
import { useProviderText } from './provider-texts';

/** As the API's document has it. */
const NUMBERS = {
  connect_timeout_seconds: { min: 1, max: 60 },
  answer_timeout_seconds: { min: 1, max: 600 },
};
const idOf = (one: { kind: string; preset?: string | null }) => `${one.kind}/${one.preset ?? ''}`;

interface ProviderFormProps {
  /** Null for a new one. */
  provider: Provider | null;
  onClose: () => void;
  onDone: () => void;
}

export function ProviderForm({ provider, onClose, onDone }: ProviderFormProps) {
  const i18n = useProviderText();
  const { t } = i18n;
  const presets = useQuery({
    queryKey: ['provider-presets'],
    queryFn: () => unwrap(api.GET('/providers/presets')),
    staleTime: Infinity,
  });
  const [chosen, setChosen] = useState(provider ? idOf(provider) : 'openai/');
  const preset = presets.data?.list.find((one) => idOf(one) === chosen);
  const send = async (data: FormData) => {
    const numbers = readNumbers(data, NUMBERS, i18n);
    const protocols = preset?.protocols.filter((one) => data.has(`protocol-${one}`)) ?? [];
    const base_url = fieldText(data, 'base_url').trim();
    const proxy = fieldText(data, 'proxy').trim();
    if (provider) {
      const body = {
        base_url,
        protocols,
        ...numbers,
        ...(data.has('no-proxy') ? { proxy: null } : proxy ? { proxy } : {}),
      };
      return unwrap(api.PATCH('/providers/{id}', { params: { path: { id: provider.id } }, body }));
    }
    const key = fieldText(data, 'key').trim();
    const body = {
      name: fieldText(data, 'name').trim(),
      kind: preset?.kind ?? 'compatible',
      preset: preset?.preset ?? null,
      base_url,
      protocols,
      ...numbers,
      proxy: proxy || null,
      keys: key ? [key] : [],
    };
    return unwrap(api.POST('/providers', { body }));
  };
  return (
    <FormDialog
      title={provider ? t('providers.editTitle', { name: provider.name }) : t('providers.add')}
      submit={t('dialog.save')}
      onClose={onClose}
      onDone={onDone}
      send={send}
    >
      {(refused) => (
        <>
          {!provider && (
            <>
              <SelectField
                label={t('providers.what')}
                value={chosen}
                choices={(presets.data?.list ?? []).map((one) => ({ value: idOf(one), label: one.title }))}
                onChange={(event) => setChosen(event.target.value)}
              />
              <Field
                label={t('providers.name')}
                name="name"
                hint={t('providers.nameHint')}
                autoComplete="off"
                error={refused('name')}
              />
            </>
          )}
          {preset && <Known preset={preset} />}
          <Field
            key={`url-${chosen}`}
            label={t('providers.url')}
            name="base_url"
            inputMode="url"
            hint={t(provider ? 'providers.urlHintEdit' : 'providers.urlHint')}
            autoComplete="off"
            defaultValue={provider?.base_url ?? preset?.base_url ?? ''}
            error={refused('base_url')}
          />
          <fieldset key={`protocols-${idOf(preset ?? { kind: '' })}`} className="space-y-1.5">
            <legend className="text-sm font-medium">{t('providers.protocols')}</legend>
            {preset?.protocols.map((one) => (
              <CheckField
                key={one}
                name={`protocol-${one}`}
                label={one}
                defaultChecked={
                  provider ? provider.protocols.includes(one) : preset.source !== null || one === 'chat'
                }
              />
            ))}
            {refused('protocols') && (
              <p role="alert" className="text-sm font-medium text-danger">
                {refused('protocols')}
              </p>
            )}
          </fieldset>
          {!provider && (
            <PasswordField
              label={t('providers.key')}
              name="key"
              hint={t('providers.keyHint')}
              autoComplete="off"
              error={refused('key')}
            />
          )}
          <NumberField
            label={t('providers.connect')}
            name="connect_timeout_seconds"
            spec={NUMBERS.connect_timeout_seconds}
            value={provider?.connect_timeout_seconds ?? 10}
            error={refused('connect_timeout_seconds')}
          />
          <NumberField
            label={t('providers.answer')}
            name="answer_timeout_seconds"
            spec={NUMBERS.answer_timeout_seconds}
            value={provider?.answer_timeout_seconds ?? 600}
            error={refused('answer_timeout_seconds')}
          />
          <Field
            label={t('providers.proxy')}
            name="proxy"
            autoComplete="off"
            hint={
              provider?.proxy ? t('providers.proxyIs', { proxy: provider.proxy }) : t('providers.proxyHint')
            }
            error={refused('proxy')}
          />
          {provider?.proxy && <CheckField name="no-proxy" label={t('providers.proxyNone')} />}
        </>
      )}
    </FormDialog>
  );
}

/** What is odd about a provider, and where that is written. */
function Known({ preset }: { preset: ProviderPreset }) {
  const { t } = useProviderText();
  if (!preset.source) return null;
  return (
    <div className="rounded-lg bg-sunken p-3 text-sm">
      <ul className="list-disc space-y-1 ps-5">
        {preset.oddities.map(({ code, about }) => (
          <li key={code}>{ODD.has(code) ? t(`providers.odd.${code as Odd}`) : about}</li>
        ))}
      </ul>
      <a
        href={preset.source}
        target="_blank"
        rel="noreferrer"
        className="mt-1 inline-block underline decoration-line underline-offset-4"
      >
        {t('providers.documentation')}
      </a>
    </div>
  );
}

const ODDITIES = [
  'chat_is_a_trial',
  'cache_control_ignored',
  'messages_without_images',
  'unknown_models_replaced',
  'unknown_fields_refused',
  'one_choice_only',
  'keys_by_region',
  'coding_plan_elsewhere',
  'messages_in_some_regions',
  'responses_stateless',
  'by_loaded_model',
  'tool_calls_unreliable',
] as const;
type Odd = (typeof ODDITIES)[number];
const ODD = new Set<string>(ODDITIES);
