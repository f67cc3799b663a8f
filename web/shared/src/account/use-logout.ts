// Signs out: the token is ended at the server, and here whatever the server says.
import { useCallback } from 'react';
import { useApp } from '../app';

export function useLogout() {
  const { session, account } = useApp();
  return useCallback(async () => {
    const { token } = session.state();
    session.end('signed-out');
    // A server that cannot be reached must not keep anybody signed in on this page.
    if (token !== null) await account.logout(token).catch(() => null);
  }, [session, account]);
}
