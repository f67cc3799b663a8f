// The employee app's login page.
import { LoginPage } from '@tidepool/shared/account/login-page';
import { useText } from '../messages';

export default function Login() {
  const { t } = useText();
  return <LoginPage lead={t('login.lead')} motto={t('login.motto')} />;
}
