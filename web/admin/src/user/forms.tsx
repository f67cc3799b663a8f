// The form of an employee, for a new one and for changes; and the confirmations that end an account.
import { useQueryClient } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { Confirm } from '@tidepool/shared/ui/confirm';
import { Field, PasswordField } from '@tidepool/shared/ui/field';
import { fieldText } from '@tidepool/shared/ui/form';
import { readNumbers } from '@tidepool/shared/ui/number';
import { NumberField } from '@tidepool/shared/ui/number-field';
import { CheckField } from '@tidepool/shared/ui/text-area';
import { toast } from '@tidepool/shared/ui/toast';
import { api } from '../api';
import { useText } from '../messages';
import { changedFields } from '../parts/changed-fields';
import { FormDialog } from '../parts/form-dialog';
import type { User } from '../records';
import { warnOfPending } from './pending-keys';
import { QUOTA } from './quota';

interface UserFormProps {
  user?: User;
  onClose: () => void;
  onDone?: (user: User) => void;
}

export function UserForm({ user, onClose, onDone }: UserFormProps) {
  const i18n = useText();
  const { t } = i18n;
  const client = useQueryClient();
  const numbers = { quota_daily: { ...QUOTA, none: t('users.noLimit') } };
  return (
    <FormDialog<User>
      title={user ? t('users.editTitle', { name: user.name || user.email }) : t('users.add')}
      submit={t(user ? 'dialog.save' : 'users.add')}
      onClose={onClose}
      onDone={(saved) => {
        void client.invalidateQueries({ queryKey: ['users'] });
        toast('success', t('users.saved', { name: saved.email }));
        onDone?.(saved);
      }}
      send={(data) => {
        const body = {
          name: fieldText(data, 'name').trim(),
          department: fieldText(data, 'department').trim(),
          // The API's word for no limit is 0.
          quota_daily: readNumbers(data, numbers, i18n).quota_daily ?? 0,
          password: fieldText(data, 'password') || undefined,
        };
        const patch = { ...body, forget_identity: data.has('forget_identity') || undefined };
        return user
          ? unwrap(
              api.PATCH('/users/{id}', {
                params: { path: { id: user.id } },
                body: changedFields<typeof patch>(user, patch),
              }),
            )
          : unwrap(api.POST('/users', { body: { ...body, email: fieldText(data, 'email').trim() } }));
      }}
    >
      {(refused) => (
        <>
          {!user && (
            <Field label={t('users.email')} name="email" type="email" required error={refused('email')} />
          )}
          <Field label={t('users.name')} name="name" defaultValue={user?.name} error={refused('name')} />
          <Field
            label={t('users.department')}
            name="department"
            defaultValue={user?.department}
            error={refused('department')}
          />
          <NumberField
            label={t('users.quota')}
            name="quota_daily"
            spec={numbers.quota_daily}
            value={user === undefined || user.quota_daily === 0 ? null : user.quota_daily}
            hint={t('users.quotaHint')}
            error={refused('quota_daily')}
          />
          <PasswordField
            label={t(user ? 'users.newPassword' : 'users.password')}
            name="password"
            autoComplete="new-password"
            hint={t(user ? 'users.newPasswordHint' : 'users.passwordHint')}
            error={refused('password')}
          />
          {user?.has_identity && (
            <CheckField
              label={t('users.forgetIdentity')}
              name="forget_identity"
              hint={t('users.forgetIdentityHint')}
            />
          )}
        </>
      )}
    </FormDialog>
  );
}

/** Takes an employee's access away, or gives it back. */
export function ChangeStatus({ user, onClose }: { user: User; onClose: () => void }) {
  const { t } = useText();
  const client = useQueryClient();
  const revoking = user.status === 'active';
  return (
    <Confirm
      title={t(revoking ? 'users.revokeTitle' : 'users.restoreTitle', { name: user.name || user.email })}
      name={revoking ? user.email : undefined}
      danger={revoking}
      confirm={t(revoking ? 'users.revoke' : 'users.restore')}
      run={() =>
        revoking
          ? unwrap(api.DELETE('/users/{id}', { params: { path: { id: user.id } } })).then((deleted) =>
              warnOfPending(deleted.pending_keys, t),
            )
          : unwrap<unknown>(
              api.PATCH('/users/{id}', { params: { path: { id: user.id } }, body: { status: 'active' } }),
            )
      }
      onDone={() => void client.invalidateQueries({ queryKey: ['users'] })}
      onClose={onClose}
    >
      <p>{t(revoking ? 'users.revokeText' : 'users.restoreText')}</p>
      {revoking && user.instance_name && <p>{t('users.revokeInstance', { name: user.instance_name })}</p>}
    </Confirm>
  );
}
