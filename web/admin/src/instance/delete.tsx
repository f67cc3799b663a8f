// Asks before an instance is deleted, and says everything that ends with it.
import { useQueryClient } from '@tanstack/react-query';
import { Confirm } from '@tidepool/shared/ui/confirm';
import { toast } from '@tidepool/shared/ui/toast';
import { isNeverCleaned } from '../parts/runs-as';
import type { InstanceDetail } from '../records';
import { remove } from './actions';
import { usePlaceText, type PlaceKey } from './place-texts';

/** What becomes of it on its server. */
function deleteText({ runner, container_id: container, home, isolation }: InstanceDetail): PlaceKey {
  if (runner === 'process' || runner === 'address') return 'delete.untouchedText';
  // Only one that was adopted has a home.
  if (container !== '') return home === '' ? 'delete.containerText' : 'delete.containerStoppedText';
  return isNeverCleaned({ isolation }) ? 'instances.deleteKeptText' : 'instances.deleteText';
}

export function DeleteInstance({
  instance,
  onClose,
  onDone,
}: {
  instance: InstanceDetail;
  onClose: () => void;
  onDone: () => void;
}) {
  const { t, number } = usePlaceText();
  const client = useQueryClient();
  const what = deleteText(instance);
  return (
    <Confirm
      title={t('instances.deleteTitle', { name: instance.name })}
      name={instance.id}
      confirm={t('instances.delete')}
      run={() => remove(instance.id)}
      onClose={onClose}
      onDone={() => {
        // Its own panel is still open at this moment; asking for what is gone would be answered 404.
        void client.invalidateQueries({
          predicate: ({ queryKey }) => queryKey[0] === 'instances' && !queryKey.includes(instance.id),
        });
        toast('success', t('instances.deleted', { name: instance.name }));
        onDone();
      }}
    >
      <p>{t(what, { server: instance.server_name, port: instance.gateway_port })}</p>
      <p>
        {instance.assigned_email
          ? t('instances.deleteUser', { email: instance.assigned_email })
          : t('instances.deleteNobody')}
      </p>
      <p>{t('instances.deleteUsage', { count: number(instance.total_requests) })}</p>
    </Confirm>
  );
}
