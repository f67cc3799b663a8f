// The form that adds a profession, shows it or changes it.
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { Field } from '@tidepool/shared/ui/field';
import { fieldText } from '@tidepool/shared/ui/form';
import { readNumbers } from '@tidepool/shared/ui/number';
import { NumberField } from '@tidepool/shared/ui/number-field';
import { SelectField } from '@tidepool/shared/ui/select';
import { CheckField, TextArea } from '@tidepool/shared/ui/text-area';
import { api } from '../api';
import { useMay } from '../me';
import { useText } from '../messages';
import { changedFields } from '../parts/changed-fields';
import { FormDialog } from '../parts/form-dialog';
import type { Profession } from '../records';
import { ProfessionLimitsSummary } from './limits';

const NUMBERS = { sort_order: { min: -1_000_000, max: 1_000_000 } };

export function ProfessionForm({ profession, onClose }: { profession?: Profession; onClose: () => void }) {
  const i18n = useText();
  const { t } = i18n;
  const client = useQueryClient();
  const mayManage = useMay('pools.manage');
  const packs = useQuery({
    queryKey: ['market', 'role-packs'],
    queryFn: () =>
      unwrap(
        api.GET('/marketplace-items', { params: { query: { type: 'role_pack', page: 1, page_size: 200 } } }),
      ),
  });
  // The pack that it has stays chosen, whether or not the list has it.
  const current = profession?.role_pack_id ?? '';
  const known = (packs.data?.list ?? []).map((pack) => ({ value: pack.id, label: pack.name }));
  const isKnown = current === '' || known.some(({ value }) => value === current);
  return (
    <FormDialog
      title={
        profession === undefined
          ? t('professions.add')
          : mayManage
            ? t('professions.editTitle', { name: profession.name })
            : profession.name
      }
      submit={t(profession ? 'dialog.save' : 'professions.add')}
      readOnly={!mayManage}
      onClose={onClose}
      onDone={() => void client.invalidateQueries({ queryKey: ['pool'] })}
      send={(data) => {
        const body = {
          name: fieldText(data, 'name').trim(),
          icon: fieldText(data, 'icon').trim(),
          tagline: fieldText(data, 'tagline').trim(),
          description: fieldText(data, 'description'),
          ...readNumbers(data, NUMBERS, i18n),
          is_official: data.has('is_official') ? (1 as const) : (0 as const),
          is_active: data.has('is_active') ? (1 as const) : (0 as const),
        };
        const pack = fieldText(data, 'role_pack_id');
        if (!profession) {
          const code = fieldText(data, 'code').trim();
          return unwrap(
            api.POST('/professions', { body: { ...body, code, role_pack_id: pack || undefined } }),
          );
        }
        // Null takes the pack away.
        const patch = { ...body, role_pack_id: pack || null };
        return unwrap(
          api.PATCH('/professions/{id}', {
            params: { path: { id: profession.id } },
            body: changedFields<typeof patch>(profession, patch),
          }),
        );
      }}
    >
      {(refused) => (
        <>
          <div className="grid gap-4 sm:grid-cols-2">
            <Field
              label={t('professions.name')}
              name="name"
              required
              defaultValue={profession?.name}
              error={refused('name')}
            />
            {profession ? (
              <Field
                label={t('professions.code')}
                defaultValue={profession.code}
                readOnly
                hint={t('professions.codeFixed')}
              />
            ) : (
              <Field
                label={t('professions.code')}
                name="code"
                required
                hint={t('professions.codeHint')}
                error={refused('code')}
              />
            )}
            <Field
              label={t('professions.icon')}
              name="icon"
              required
              defaultValue={profession?.icon}
              hint={t('professions.iconHint')}
              error={refused('icon')}
            />
            <NumberField
              label={t('professions.order')}
              name="sort_order"
              spec={NUMBERS.sort_order}
              value={profession?.sort_order ?? 0}
              error={refused('sort_order')}
            />
          </div>
          <Field
            label={t('professions.tagline')}
            name="tagline"
            required
            defaultValue={profession?.tagline}
            error={refused('tagline')}
          />
          <TextArea
            label={t('professions.description')}
            name="description"
            rows={3}
            defaultValue={profession?.description}
          />
          <SelectField
            key={packs.data?.total}
            label={t('professions.pack')}
            name="role_pack_id"
            defaultValue={current}
            choices={[
              { value: '', label: t('professions.noPack') },
              ...(isKnown ? [] : [{ value: current, label: current }]),
              ...known,
            ]}
          />
          <CheckField
            label={t('professions.isListed')}
            name="is_active"
            defaultChecked={profession?.is_active !== 0}
          />
          <CheckField
            label={t('professions.official')}
            name="is_official"
            defaultChecked={profession?.is_official === 1}
          />
          {profession && <ProfessionLimitsSummary profession={profession} />}
        </>
      )}
    </FormDialog>
  );
}
