// Professions: instances made ready for a kind of work, to be claimed.
import { Page } from '@tidepool/shared/shell/page';
import { Professions } from '../claim/offers';
import { useText } from '../messages';

export default function ProfessionsPage() {
  const { t } = useText();
  return (
    <Page title={t('nav.professions')} lead={t('professions.lead')}>
      <Professions heading={t('professions.all')} />
    </Page>
  );
}
