// The form of an administrator, for a new one and for changes.
import { unwrap } from '@tidepool/shared/api/envelope';
import { Field, PasswordField } from '@tidepool/shared/ui/field';
import { fieldText } from '@tidepool/shared/ui/form';
import { SelectField } from '@tidepool/shared/ui/select';
import { CheckField } from '@tidepool/shared/ui/text-area';
import { useState } from 'react';
import { api } from '../api';
import { useText } from '../messages';
import { changedFields } from '../parts/changed-fields';
import { FormDialog } from '../parts/form-dialog';
import { oneOf, ROLES, type Admin } from '../records';

interface AdminFormProps {
  admin?: Admin;
  onClose: () => void;
  onDone: () => void;
}

export function AdminForm({ admin, onClose, onDone }: AdminFormProps) {
  const { t } = useText();
  const [role, setRole] = useState(admin?.role ?? 'admin');
  return (
    <FormDialog
      title={admin ? t('users.editTitle', { name: admin.email }) : t('admins.add')}
      submit={t(admin ? 'dialog.save' : 'admins.add')}
      onClose={onClose}
      onDone={onDone}
      send={(data) => {
        const body = {
          name: fieldText(data, 'name').trim(),
          role,
          password: fieldText(data, 'password') || undefined,
        };
        const patch = { ...body, forget_identity: data.has('forget_identity') || undefined };
        return admin
          ? unwrap(
              api.PATCH('/admin-users/{email}', {
                params: { path: { email: admin.email } },
                body: changedFields<typeof patch>(admin, patch),
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
            value={role}
            onChange={(event) => setRole(oneOf(event.target.value, ROLES) ?? role)}
            hint={t(`role.${role}.text`)}
            choices={ROLES.map((value) => ({ value, label: t(`role.${value}`) }))}
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
