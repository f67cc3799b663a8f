// A CSV file that the server writes, saved for the person.
import { bearerOf } from '@tidepool/shared/api/client';
import { ApiError } from '@tidepool/shared/api/envelope';
import { saveFile } from '@tidepool/shared/table/csv';
import { session } from '../api';

/** What has no value is not sent. */
export async function saveServerFile(
  path: string,
  query: Readonly<Record<string, string | undefined>>,
  name: string,
) {
  const url = new URL(path, document.baseURI);
  for (const [key, value] of Object.entries(query)) if (value) url.searchParams.set(key, value);
  const response = await fetch(url, { headers: { authorization: bearerOf(session.state().token ?? '') } });
  if (!response.ok)
    throw new ApiError({ code: 'malformed', msg: `HTTP ${response.status}`, status: response.status });
  saveFile(name, await response.blob());
}
