// Which models differ from what the release knows of them, with a button that takes it over.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { errorText } from '@tidepool/shared/api/error-text';
import { Button } from '@tidepool/shared/ui/button';
import { Dialog } from '@tidepool/shared/ui/dialog';
import { Panel } from '@tidepool/shared/ui/panel';
import { toast } from '@tidepool/shared/ui/toast';
import { api } from '../api';
import { useFormat } from '../format';
import { useMay } from '../me';
import { oneOf } from '../records';
import { useModelText, type ModelKey } from './model-texts';

const FIELDS: Record<string, ModelKey | undefined> = {
  purpose: 'model.purpose',
  protocols: 'model.protocols',
  context_window: 'model.context',
  max_output_tokens: 'model.answer',
  inputs: 'model.inputs',
  reasoning: 'model.reasoning',
  tools: 'model.tools',
  price_per_1k: 'models.priceLabel',
  price_source: 'model.priceSource',
};

const KINDS: Record<string, ModelKey | undefined> = {
  input: 'model.input',
  output: 'model.output',
  cache_read: 'model.cacheRead',
  cache_write: 'model.cacheWrite',
  cache_write_1h: 'model.cacheWriteHour',
};

/** What a value that is a word is called. */
const WORDS: Record<string, ModelKey | undefined> = {
  yes: 'model.yes',
  no: 'model.no',
  embedding: 'model.purpose.embedding',
  text: 'model.input.text',
  image: 'model.input.image',
  document: 'model.input.document',
  audio: 'model.input.audio',
  spec: 'model.source.spec',
  edited: 'model.source.editedBySomebody',
  table: 'model.source.table',
};

const TIERS = ['standard', 'flex', 'priority', 'batch'] as const;

/** How the console writes what the server names and values in a comparison: `prices standard above 200000: input`, `128000`. */
function useWritten() {
  const { t, number } = useModelText();
  const { fineMoney } = useFormat();
  const price = (field: string) => /^prices (\w+)(?: above (\d+))?: (\w+)$/.exec(field);
  return {
    field: (field: string) => {
      const plain = FIELDS[field];
      if (plain) return t(plain);
      const [, word, above, kind] = price(field) ?? [];
      const tier = oneOf(word, TIERS);
      const name = KINDS[kind ?? ''];
      if (!tier || !name) return field;
      const at = t(`model.tier.${tier}`);
      const whole = above ? t('model.above', { tier: at, tokens: number(Number(above)) }) : at;
      return t('model.priceOf', { kind: t(name), tier: whole });
    },
    value: (field: string, value: string | null | undefined) => {
      if (value == null) return t('model.unknown');
      if (field === 'price_per_1k' || price(field)) return fineMoney(Number(value));
      if (/^\d+$/.test(value)) return number(Number(value));
      // Protocols are written as they are everywhere.
      if (field === 'protocols') return value;
      const words = value.split(/[ ,]+/).map((word) => {
        const key = field === 'purpose' && word === 'chat' ? 'model.purpose.chat' : WORDS[word];
        return key ? t(key) : word;
      });
      return words.join(', ');
    },
  };
}

export default function ModelCompare({ onClose }: { onClose: () => void }) {
  const i18n = useModelText();
  const { t } = i18n;
  const written = useWritten();
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
                    <table className="mt-1 w-full wrap-normal">
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
                              {written.field(field)}
                            </th>
                            <td className="py-1 pe-4 tabular-nums">{written.value(field, ours)}</td>
                            <td className="py-1 pe-4 tabular-nums">{written.value(field, theirs)}</td>
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
