// The form of an administrator, for a new one and for changes.
import { unwrap } from '@tidepool/shared/api/envelope';
import { Field, PasswordField } from '@tidepool/shared/ui/field';
import { fieldText } from '@tidepool/shared/ui/form';
import { SelectField } from '@tidepool/shared/ui/select';
import { CheckField } from '@tidepool/shared/ui/text-area';
import { api } from '../api';
import { useText } from '../messages';
import { FormDialog } from '../parts/form-dialog';
import type { Admin } from '../records';

interface AdminFormProps {
  admin?: Admin;
  onClose: () => void;
  onDone: () => void;
}

export function AdminForm({ admin, onClose, onDone }: AdminFormProps) {
  const { t } = useText();
  return (
    <FormDialog
      title={admin ? t('users.editTitle', { name: admin.email }) : t('admins.add')}
      submit={t(admin ? 'dialog.save' : 'admins.add')}
      onClose={onClose}
      onDone={onDone}
      send={(data) => {
        const password = fieldText(data, 'password');
        const body = {
          name: fieldText(data, 'name').trim(),
          role: fieldText(data, 'role') === 'super_admin' ? ('super_admin' as const) : ('admin' as const),
          password: password === '' ? null : password,
        };
        const forget_identity = data.has('forget_identity');
        return admin
          ? unwrap(
              api.PATCH('/admin-users/{email}', {
                params: { path: { email: admin.email } },
                body: { ...body, forget_identity },
              }),
            )
          : unwrap(api.POST('/admin-users', { body: { ...body, email: fieldText(data, 'email').trim() } }));
      }}
    >
      {(refused) => (
        <>
          {!admin && (
            <Field label={t('users.email')} name="email" type="email" required error={refused('email')} />
          )}
          <Field label={t('users.name')} name="name" defaultValue={admin?.name} error={refused('name')} />
          <SelectField
            label={t('account.role')}
            name="role"
            defaultValue={admin?.role ?? 'admin'}
            hint={t('admins.roleHint')}
            choices={[
              { value: 'admin', label: t('role.admin') },
              { value: 'super_admin', label: t('role.super_admin') },
            ]}
          />
          <PasswordField
            label={t(admin ? 'users.newPassword' : 'users.password')}
            name="password"
            autoComplete="new-password"
            hint={t(admin ? 'users.newPasswordHint' : 'users.passwordHint')}
            error={refused('password')}
          />
          {admin?.has_identity && (
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
