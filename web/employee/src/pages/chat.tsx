// The chat page: first the instance list, then today's sums, then the first instance or the one named in the URL.
import { PageTitle } from '@tidepool/shared/shell/page';
import { ErrorState, Skeleton } from '@tidepool/shared/ui/states';
import { useSearchParams } from 'wouter';
import { Room } from '../chat/room';
import { Welcome } from '../chat/welcome';
import { useInstances, useSummary } from '../instances-query';
import { useText } from '../messages';
import { useProfile } from '../profile-query';

export default function ChatPage() {
  const { t } = useText();
  const [search, setSearch] = useSearchParams();
  const instances = useInstances();
  const summary = useSummary(instances.isSuccess);
  const profile = useProfile();
  const list = instances.data;
  const wanted = search.get('instance');

  if (list === undefined)
    return instances.isError ? (
      <Centred title={t('nav.chat')}>
        <ErrorState error={instances.error} onRetry={() => void instances.refetch()} />
      </Centred>
    ) : (
      <Centred title={t('nav.chat')}>
        <Skeleton lines={4} />
      </Centred>
    );
  if (list.length === 0) return <Welcome />;
  const selected = list.find((one) => one.id === wanted) ?? list[0];
  // Sums that cannot be had do not hold up the chat; a profile must name the account that drafts belong to.
  const ready = (summary.isSuccess || summary.isError) && (profile.data ?? null) !== null;
  if (selected === undefined || !ready || profile.data === undefined)
    return (
      <Centred title={t('nav.chat')}>
        {profile.isError ? (
          <ErrorState error={profile.error} onRetry={() => void profile.refetch()} />
        ) : (
          <Skeleton lines={4} />
        )}
      </Centred>
    );
  return (
    <Room
      account={profile.data.id}
      instances={list}
      selected={selected}
      conversation={search.get('conversation')}
      onOpened={() => setSearch({ instance: selected.id }, { replace: true })}
      onSelect={(id) => setSearch({ instance: id })}
    />
  );
}

function Centred({ title, children }: { title: string; children: React.ReactNode }) {
  return (
    <div className="mx-auto w-full max-w-xl px-4 py-10">
      <PageTitle title={title} />
      <h1 className="sr-only">{title}</h1>
      {children}
    </div>
  );
}
