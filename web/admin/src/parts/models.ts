// What forms and filters know of instances' models and ports.
import { useQuery } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { api } from '../api';

/** As the API's document has it. */
export const GATEWAY_PORT = { min: 1024, max: 65_535 };

export function useModels() {
  return useQuery({ queryKey: ['models'], queryFn: () => unwrap(api.GET('/models')) });
}
